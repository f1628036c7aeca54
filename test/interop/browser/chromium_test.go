package browser_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// chromium is the browser of all tests: to start one takes longer than most of what they
// do. Each test has a profile and a tab of its own in it.
var chromium browser

// browser starts when the first test wants it.
type browser struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	status := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	os.Exit(status)
}

// start starts it. No test's context is its parent: it lives until the last has ended.
func (b *browser) start() {
	program, err := exec.LookPath("chromium")
	if err != nil {
		b.err = err
		return
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(deadline))
	actx, acancel := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(actx)
	b.ctx, b.stop = ctx, func() { _ = chromedp.Cancel(ctx); cancel(); acancel() }
	if err := chromedp.Do(ctx); err != nil {
		b.err = fmt.Errorf("chromium does not start: %w", err)
	}
}

// tab opens a tab that knows nothing of the others, and closes it after the test.
func (b *browser) tab(t *testing.T) context.Context {
	t.Helper()
	judge.Need(t, "chromium")
	b.once.Do(b.start)
	if b.err != nil {
		t.Fatal(b.err)
	}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancel() })
	return ctx
}
