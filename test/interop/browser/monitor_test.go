package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/monitor"
	"github.com/verbena-rdma/verbena/diag/serve"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// deadline is how long anything on the page may take on a busy machine.
const deadline = 90 * time.Second

// rule makes a finding of traffic, so that the test decides when there is one.
const rule = `
- id: X01
  title: 'the port sends'
  step: 2
  each: port
  warn: 'delta("tx_packets") > 0'
  confidence: 0.9
  cause: 'a program writes'
  why: 'the test wants to see it'
  fix: ['stop it']
  source: 'test'
`

// page is a monitor with a browser that looks at it.
type page struct {
	t   *testing.T
	ctx context.Context
	url string

	gone atomic.Bool // the server answers nobody

	mu     sync.Mutex
	wrong  []string // errors of the console, exceptions
	others []string // requests to anybody else
	asked  int
}

func open(t *testing.T, rules []*doctor.Rule, hosts ...monitor.Host) *page {
	t.Helper()
	judge.Need(t, "chromium")
	m, err := monitor.New(monitor.Config{Hosts: hosts, Rules: rules, Every: 250 * time.Millisecond, Examine: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := serve.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { m.Run(ctx) })
	p := &page{t: t, url: srv.URL()}
	pages := m.Handler()
	wg.Go(func() {
		_ = srv.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.gone.Load() {
				panic(http.ErrAbortHandler) // closes the connection without an answer
			}
			pages.ServeHTTP(w, r)
		}))
	})
	t.Cleanup(func() { stop(); wg.Wait() })

	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(deadline))
	actx, acancel := chromedp.NewExecAllocator(ctx, opts...)
	bctx, bcancel := chromedp.NewContext(actx)
	t.Cleanup(func() { _ = chromedp.Cancel(bctx); bcancel(); acancel() })
	p.ctx = bctx
	if err := chromedp.Listen(bctx, p.heard); err != nil {
		t.Fatal(err)
	}
	p.do("start", command(network.Enable, network.EnableParams{}), command(runtime.Enable, cdp.Empty{}), command(log.Enable, cdp.Empty{}))
	return p
}

// command is one of the browser's protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// script runs something in the page.
func script(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: text})
		return err
	})
}

// pick chooses an entry of a list as a person would.
func pick(list, value string) chromedp.Action[chromedp.Void] {
	return script(fmt.Sprintf(`(() => { const l = document.querySelector(%q); l.value = %q; l.dispatchEvent(new Event("change")); })()`, list, value))
}

// heard notes what the browser complains of and asks for.
func (p *page) heard(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		p.wrong = append(p.wrong, fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.wrong = append(p.wrong, fmt.Sprint("console: ", e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.wrong = append(p.wrong, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		p.asked++
		if u := e.Request.URL; !strings.HasPrefix(u, p.url+"/") && !strings.HasPrefix(u, "data:") && u != "about:blank" {
			p.others = append(p.others, u)
		}
	}
}

// clean fails the test for every complaint.
func (p *page) clean() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wrong {
		p.t.Errorf("the browser complains: %s", w)
	}
	for _, u := range p.others {
		p.t.Errorf("the page asks for %s", u)
	}
	if p.asked < 8 {
		p.t.Errorf("the browser has asked for %d files, the page alone has more", p.asked)
	}
}

func (p *page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, deadline)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// wait waits until a condition in the page's language holds.
func (p *page) wait(what, condition string) {
	p.t.Helper()
	// chromedp.Poll would compile a function in the page, which the page's policy forbids.
	end := time.Now().Add(deadline)
	for {
		yes, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+condition+")"))
		if err == nil && yes {
			return
		}
		if time.Now().Before(end) {
			time.Sleep(50 * time.Millisecond) // between two looks
			continue
		}
		p.shot("failed")
		text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		p.t.Fatalf("%s did not come: %v\nthe page says:\n%s", what, err, text)
	}
}

func (p *page) text(expr string) string {
	p.t.Helper()
	s, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("String("+expr+")"))
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	return s
}

// shot keeps a picture of the page.
func (p *page) shot(name string) {
	p.t.Helper()
	b, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Errorf("picture %s: %v", name, err)
		return
	}
	file := filepath.Join(p.t.ArtifactDir(), "monitor-"+name+".png")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		p.t.Error(err)
	}
}

func (p *page) size(width, height int64, scheme string, phone bool) {
	p.t.Helper()
	p.do("size", command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: phone}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

func rules(t *testing.T, more string) []*doctor.Rule {
	t.Helper()
	all, err := doctor.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	own, err := doctor.Parse("test.yaml", []byte(more))
	if err != nil {
		t.Fatal(err)
	}
	if all, err = doctor.Merge(all, own, true); err != nil {
		t.Fatal(err)
	}
	return all
}

// A device of ours sends; the plot moves, the finding appears, another host can be
// chosen, and the browser has nothing to complain of.
func TestLivePage(t *testing.T) {
	judge.Need(t, "chromium")
	a, b := talk(t)
	p := open(t, rules(t, rule), live(t, a.dev, b.dev), storm())
	p.size(1440, 1000, "light", false)
	p.do("open", chromedp.Navigate(p.url+"/"))
	p.wait("the first rates", `state.series.size > 0 && state.times.length > 2`)
	dev := a.dev.Name() + "/1" // the first of two devices of one name
	peak := fmt.Sprintf(`Math.max(...state.series.get("throughput\n%s\nsent").values)`, dev)
	if quiet := p.text(peak); quiet != "0" {
		t.Errorf("before anybody sends, %s sends %s bit/s", dev, quiet)
	}
	p.wait("a verdict", `document.querySelector("#verdict").textContent.includes("checks passed")`)
	if got := p.text(`document.querySelector("#list").textContent.includes("X01")`); got != "false" {
		t.Error("there is a finding of traffic before there is traffic")
	}
	drawn := `(() => { const c = document.querySelector("#plot-throughput canvas"); return c.toDataURL().length; })()`
	before := p.text(drawn)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.write(ctx) }()
	p.wait("traffic in the plot", peak+" > 1e6")
	p.wait("another picture", drawn+" !== "+before)
	p.wait("the finding", `[...document.querySelectorAll("#list summary")].some((s) => s.textContent.includes("X01") && s.textContent.includes("`+dev+`"))`)
	p.wait("the finding's mark", `state.events.some((e) => e.rule === "X01")`)
	p.wait("its value in the legend", `[...document.querySelectorAll("#plot-throughput .legend li")].some((l) => l.textContent.includes("sent") && /[1-9].*bit/.test(l.querySelector("b").textContent))`)
	p.shot("live-light")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	// The finding opens by keyboard and stays open while the page goes on.
	p.do("open the finding", script(`[...document.querySelectorAll("#list summary")].find((s) => s.textContent.includes("X01")).focus()`), chromedp.KeyEvent(kb.Enter))
	p.wait("the evidence", `[...document.querySelectorAll("#list details[open]")].some((d) => d.textContent.includes("a program writes"))`)

	p.do("choose a host", pick("#host", "gpu-17"))
	p.wait("the recorded host", `state.host === "gpu-17" && document.querySelector("#plot-pause canvas") && document.querySelector("#statetext").textContent.includes("recorded")`)
	p.wait("its finding", `[...document.querySelectorAll("#list summary")].some((s) => s.textContent.includes("C01"))`)
	if got := p.text(`state.series.has("throughput\n` + dev + `\nsent")`); got != "false" {
		t.Error("the other host's lines are still there")
	}
	p.shot("recorded-light")
	p.do("choose a device", pick("#device", "mlx5_1/1"))
	p.wait("one device's lines", `document.querySelectorAll("#plot-throughput .legend li").length === 2`)
	p.clean()
}

// Readable on a phone and on a desk, light and dark: nothing to scroll sideways, text
// that stands out from its ground.
func TestSizesAndSchemes(t *testing.T) {
	p := open(t, rules(t, rule), storm())
	for _, c := range []struct {
		name          string
		width, height int64
		scheme        string
		phone         bool
	}{
		{"desk-dark", 1440, 1000, "dark", false},
		{"desk-light", 1440, 1000, "light", false},
		{"tablet-light", 820, 1180, "light", true},
		{"phone-light", 360, 740, "light", true},
		{"phone-dark", 360, 740, "dark", true},
	} {
		p.size(c.width, c.height, c.scheme, c.phone)
		p.do("open", chromedp.Navigate(p.url+"/#gpu-17"))
		p.wait("plots and findings at "+c.name, `document.querySelectorAll(".plot canvas").length === 7 && document.querySelectorAll("#list li").length > 0`)
		p.wait("plots as wide as their place at "+c.name, `[...document.querySelectorAll(".plot canvas")].every((x) => Math.abs(x.getBoundingClientRect().width - x.closest(".chart").clientWidth) < 3)`)
		if got := p.text(`document.documentElement.scrollWidth <= innerWidth`); got != "true" {
			t.Errorf("%s: the page is %s wide, the window %d", c.name, p.text("document.documentElement.scrollWidth"), c.width)
		}
		// WCAG 2.1 §1.4.3: 4.5 to 1 for text.
		if got := p.text(contrast); got != "" {
			t.Errorf("%s: too little contrast: %s", c.name, got)
		}
		p.shot(c.name)
	}
	p.clean()
}

// contrast names the texts whose colour is too near to their ground.
const contrast = `(() => {
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const lum = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
  const bad = new Set();
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.offsetParent || e.closest("select, noscript, .skip")) continue;
    const a = lum(rgb(getComputedStyle(e).color)), b = lum(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
  }
  return [...bad].join("; ");
})()`

// A host without devices says so, and a monitor that has ended is said to be gone.
func TestNothingAndGone(t *testing.T) {
	empty := monitor.Host{Name: "bare", Look: func() *snapshot.Snapshot {
		return &snapshot.Snapshot{Origin: snapshot.Live, Taken: time.Now()}
	}}
	p := open(t, rules(t, rule), empty)
	p.size(1200, 800, "light", false)
	p.do("open", chromedp.Navigate(p.url+"/"))
	p.wait("what is missing", `document.querySelector("#note").textContent.includes("no RDMA device")`)
	p.wait("empty plots that say why", `[...document.querySelectorAll(".chart.none")].filter((c) => c.textContent.length > 10 && !c.textContent.includes("waiting")).length === 7`)
	p.shot("empty")
	p.clean()
	p.gone.Store(true)
	p.wait("the loss", `document.querySelector("#note").classList.contains("error") && document.querySelector("#note").textContent.includes("does not answer")`)
	p.shot("gone")
	p.gone.Store(false)
	p.wait("the return", `!document.querySelector("#note").classList.contains("error")`)
}
