package browser_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
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

// page is a page with a browser that looks at it: a monitor's, unless what says another.
type page struct {
	t    *testing.T
	ctx  context.Context
	url  string
	what string // for the names of pictures

	gone  atomic.Bool                  // the server answers nobody
	pages atomic.Pointer[http.Handler] // that of the monitor that runs
	run   func(m *monitor.Monitor)     // puts another monitor in its place

	mu     sync.Mutex
	wrong  []string // errors of the console, exceptions
	others []string // requests to anybody else
	asked  int
}

func open(t *testing.T, rules []*doctor.Rule, hosts ...monitor.Host) *page {
	t.Helper()
	judge.Need(t, "chromium")
	srv, err := serve.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	p := &page{t: t, what: "monitor", url: srv.URL()}
	p.run = func(m *monitor.Monitor) {
		h := m.Handler()
		p.pages.Store(&h)
		wg.Go(func() { m.Run(ctx) })
	}
	p.run(watching(t, rules, hosts...))
	wg.Go(func() {
		_ = srv.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.gone.Load() {
				panic(http.ErrAbortHandler) // closes the connection without an answer
			}
			(*p.pages.Load()).ServeHTTP(w, r)
		}))
	})
	t.Cleanup(func() { stop(); wg.Wait() })

	p.ctx = chromium.tab(t)
	if err := chromedp.Listen(p.ctx, p.heard); err != nil {
		t.Fatal(err)
	}
	p.do("start", command(network.Enable, network.EnableParams{}), command(runtime.Enable, cdp.Empty{}), command(log.Enable, cdp.Empty{}))
	return p
}

// watching is a monitor of hosts, faster than usual.
func watching(t *testing.T, rules []*doctor.Rule, hosts ...monitor.Host) *monitor.Monitor {
	t.Helper()
	m, err := monitor.New(monitor.Config{Hosts: hosts, Rules: rules, Every: 250 * time.Millisecond, Examine: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return m
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

// clean404 is clean for a test in which the page was told that its host is not there any
// more, of which browsers complain.
func (p *page) clean404() {
	p.t.Helper()
	p.mu.Lock()
	told := p.wrong[:0]
	for _, w := range p.wrong {
		if !strings.Contains(w, "404 (Not Found)") {
			told = append(told, w)
		}
	}
	p.wrong = told
	p.mu.Unlock()
	p.clean()
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

// shot keeps a picture of the whole page for whoever asks for it with -artifacts: it costs
// the browser as much as a test's work.
func (p *page) shot(name string) {
	p.t.Helper()
	p.keep(name, chromedp.FullScreenshot(100))
}

// glance is shot of what the window shows, which costs little.
func (p *page) glance(name string) {
	p.t.Helper()
	p.keep(name, chromedp.CaptureScreenshot())
}

func (p *page) keep(name string, picture chromedp.Action[[]byte]) {
	p.t.Helper()
	if f := flag.Lookup("test.artifacts"); f == nil || f.Value.String() != "true" {
		return
	}
	b, err := chromedp.Run(p.ctx, picture)
	if err != nil {
		p.t.Errorf("picture %s: %v", name, err)
		return
	}
	file := filepath.Join(p.t.ArtifactDir(), p.what+"-"+name+".png")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		p.t.Error(err)
	}
}

func (p *page) size(width, height int64, scheme string, phone bool, more ...*emulation.MediaFeature) {
	p.t.Helper()
	p.do("size", command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: phone}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: append(more, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})}))
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

// sizes are the windows that the page is looked at in.
var sizes = []struct {
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
}

// legible makes sure that nothing is to be scrolled sideways and that all text stands out
// from its ground.
func (p *page) legible(name string) {
	p.t.Helper()
	if got := p.text(`document.documentElement.scrollWidth <= innerWidth`); got != "true" {
		p.t.Errorf("%s: the page is %s wide, the window %s", name, p.text("document.documentElement.scrollWidth"), p.text("innerWidth"))
	}
	// WCAG 2.1 §1.4.3: 4.5 to 1 for text.
	if got := p.text(contrast); got != "" {
		p.t.Errorf("%s: too little contrast: %s", name, got)
	}
}

// painted is whether a canvas has so many pixels of about a colour.
func painted(plot, colour string) string {
	return fmt.Sprintf(`(() => {
  const c = document.querySelector("#plot-%s canvas"), hex = %s;
  const want = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  let n = 0;
  for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200 && want.every((v, k) => Math.abs(v - d[i + k]) < 12)) n++;
  return n >= 4;
})()`, plot, colour)
}

// Readable on a phone and on a desk, light and dark: nothing to scroll sideways, text
// that stands out from its ground.
func TestSizesAndSchemes(t *testing.T) {
	p := open(t, rules(t, rule), storm())
	for _, c := range sizes {
		p.size(c.width, c.height, c.scheme, c.phone)
		p.do("open", chromedp.Navigate(p.url+"/#gpu-17"))
		p.wait("plots and findings at "+c.name, `document.querySelectorAll(".plot canvas").length === 7 && document.querySelectorAll("#list li").length > 0`)
		p.wait("plots as wide as their place at "+c.name, `[...document.querySelectorAll(".plot canvas")].every((x) => Math.abs(x.getBoundingClientRect().width - x.closest(".chart").clientWidth) < 3)`)
		p.legible(c.name)
		// WCAG 2.1 §1.4.11: 3 to 1 for lines of plots.
		if got := p.text(strokes); got != "" {
			t.Errorf("%s: lines that do not stand out: %s", c.name, got)
		}
		p.shot(c.name)
	}
	p.clean()
}

// strokes names the colours of lines that are too near to the plots' ground.
const strokes = `(() => {
  const rgb = (c) => c[0] === "#" ? [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)) : c.match(/[\d.]+/g).map(Number);
  const lum = (c) => { const [r, g, b] = rgb(c).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const b = lum(getComputedStyle(document.querySelector(".plot")).backgroundColor);
  return (dark.matches ? DARK : LIGHT).filter((c) => (Math.max(lum(c), b) + 0.05) / (Math.min(lum(c), b) + 0.05) < 3).join(" ");
})()`

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

// A host without devices says so and what to do, beside what the doctor says; and a monitor
// that has ended is said to be gone.
func TestNothingAndGone(t *testing.T) {
	empty := monitor.Host{Name: "bare", Look: func() *snapshot.Snapshot {
		return &snapshot.Snapshot{Origin: snapshot.Live, Taken: time.Now(), Problems: []snapshot.Problem{{Place: "sys/class/net", Why: "EACCES"}}}
	}}
	p := open(t, rules(t, rule), empty)
	p.do("open", chromedp.Navigate(p.url+"/"))
	for _, c := range sizes {
		if c.name != "desk-dark" && c.name != "phone-light" {
			continue // the widest and the narrowest; every scheme once
		}
		p.size(c.width, c.height, c.scheme, c.phone)
		p.wait("what to do at "+c.name, `(() => { const g = document.querySelector("#guide"); return g.offsetParent && ["No RDMA device", "verbena demo", "rdma link add rxe0 type rxe", "verbena doctor", "verbena snapshot"].every((w) => g.innerText.includes(w)); })()`)
		p.wait("no empty plots", `document.querySelector("#plots").offsetParent === null`)
		p.wait("the doctor's word", `document.querySelector("#verdict").textContent.includes("could not be judged")`)
		p.legible(c.name)
		p.shot("empty-" + c.name)
	}
	p.do("look at what could not be read", script(`document.querySelector("#unread summary").focus()`), chromedp.KeyEvent(kb.Enter))
	p.wait("the place and why", `document.querySelector("#unread[open] li").textContent === "sys/class/net EACCES"`)
	p.clean()
	p.gone.Store(true)
	p.wait("the loss", `document.querySelector("#note").classList.contains("error") && document.querySelector("#note").textContent.includes("does not answer")`)
	p.legible("gone")
	p.shot("gone")
	p.gone.Store(false)
	p.wait("the return", `!document.querySelector("#note").classList.contains("error") && document.querySelector("#statetext").textContent.startsWith("live")`)
}

// Devices come and go on a live host, findings change, the monitor is started anew: the
// page follows, and what was drawn keeps its colour.
func TestComingAndGoing(t *testing.T) {
	var h changing
	h.set("mlx5_0")
	p := open(t, rules(t, rule), h.host("node1"), lone(), storm())
	p.size(1280, 900, "light", false)
	p.do("open", chromedp.Navigate(p.url+"/"))
	stroke := func(dev string) string {
		return fmt.Sprintf(`(() => { const v = PLOTS[0].view; const s = v.all && v.all.find((s) => s.device === %q); return s ? v.look(s).stroke + v.look(s).dash : ""; })()`, dev)
	}
	p.wait("the first device", stroke("mlx5_0/1"))
	p.wait("the finding", `document.querySelector("#list").textContent.includes("X01")`)
	h.set("aa_0", "mlx5_0")
	p.wait("the second device", stroke("aa_0/1"))
	first, second := p.text(stroke("mlx5_0/1")), p.text(stroke("aa_0/1"))
	if first == second {
		t.Errorf("both devices are drawn as %s", first)
	}
	h.set("aa_0")
	p.wait("a gap where the device was", `state.series.get("throughput\nmlx5_0/1\nsent").values.at(-1) === null && state.last.devices === 1`)
	p.wait("that the finding went", `[...document.querySelectorAll("#events li")].some((l) => l.textContent.includes("no longer") && l.textContent.includes("mlx5_0"))`)
	h.set("mlx5_0", "aa_0", "zz_0")
	p.wait("the device again, and a third", stroke("zz_0/1")+` && state.series.get("throughput\nmlx5_0/1\nsent").values.at(-1) > 0`)
	if a, b := p.text(stroke("mlx5_0/1")), p.text(stroke("aa_0/1")); a != first || b != second {
		t.Errorf("the colours were %s and %s, are %s and %s", first, second, a, b)
	}
	h.set()
	p.wait("that there is none left", `document.querySelector("#guide").offsetParent && document.querySelector("#plots").offsetParent`)
	p.shot("left")
	h.set("mlx5_0")
	p.wait("the plots alone", `!document.querySelector("#guide").offsetParent && state.series.get("throughput\nmlx5_0/1\nsent").values.at(-1) > 0`)

	// The list of hosts says what the doctor found on those that are not looked at.
	p.wait("the other host's findings in the list", `[...document.querySelectorAll("#host option")].some((o) => o.value === "gpu-17" && /gpu-17 · recorded · \d FAIL \d WARN/.test(o.textContent))`)
	// By keyboard, by name: the list takes the letters that are typed.
	p.do("type a name", script(`document.querySelector("#host").focus()`), chromedp.KeyEvent("lone"))
	p.wait("the host of that name", `state.host === "lone" && location.hash === "#lone" && document.title.includes("lone")`)
	p.wait("one rate as a point", `document.querySelectorAll("#plot-throughput canvas").length === 1 && state.times.length === 1 && alone(PLOTS[0].view.u, 1).length === 1`)
	p.wait("its pixels", painted("throughput", `PLOTS[0].view.look(PLOTS[0].view.all[0]).stroke`))
	p.wait("plots that say why they are empty", `document.querySelector("#plot-cnp .none").textContent.includes("do not count")`)
	p.shot("one-sample")

	// The monitor is started anew: first with the same hosts, then without the one that is shown.
	p.run(watching(t, rules(t, rule), h.host("node1"), lone()))
	p.wait("the new monitor's list", `!document.querySelector("#note").classList.contains("error") && state.host === "lone" && state.times.length === 1 && state.began === state.last.began`)
	p.run(watching(t, rules(t, rule), h.host("node2"), storm()))
	p.wait("another host", `state.host === "node2" && [...document.querySelectorAll("#host option")].map((o) => o.value).join() === "node2,gpu-17" && state.times.length > 1`)
	p.clean404()
}

// Every plot has its lines with the right numbers, and a cursor that keys move.
func TestPlotsAndKeys(t *testing.T) {
	p := open(t, rules(t, rule), storm(), instant())
	p.size(1280, 900, "dark", false)
	p.do("open", chromedp.Navigate(p.url+"/#gpu-17"))
	for _, c := range []struct{ plot, line, want string }{
		{"pause", "mlx5_0/1 received, priority 3", "18.1 %"},
		{"pause", "mlx5_1/1 sent, priority 3", "0.9 %"},
		{"pfc", "mlx5_1/1 received, priority 3", "2.5 k"},
		{"ecn", "mlx5_0/1 marked, received", "990"},
		{"cnp", "mlx5_0/1 handled", "455"},
		{"retransmit", "mlx5_1/1 NAK", "3"},
		{"outoforder", "mlx5_0/1 received", "2"},
	} {
		p.wait(c.line+" in "+c.plot, fmt.Sprintf(`[...document.querySelectorAll("#plot-%s .legend button")].some((b) => b.innerText.replace(/\s+/g, " ").trim() === %q)`, c.plot, c.line+" "+c.want))
	}
	for i, id := range []string{"throughput", "pause", "pfc", "ecn", "cnp", "retransmit", "outoforder"} {
		p.wait("pixels of a line of "+id, painted(id, fmt.Sprintf(`PLOTS[%d].view.look(PLOTS[%d].view.all.at(-1)).stroke`, i, i)))
		p.wait("times and numbers along the axes of "+id, fmt.Sprintf(`PLOTS[%d].view.u.axes.every((a) => a._values && a._values.filter(Boolean).length >= 2) && document.querySelector("#plot-%s .unit").textContent.length > 0`, i, id))
	}
	// One device, one colour in all plots; its lines differ in their dashes.
	p.wait("one colour for a device", `new Set(PLOTS.flatMap((p) => p.view.all.filter((s) => s.device === "mlx5_1/1").map((s) => p.view.look(s).stroke))).size === 1`)
	p.wait("lines that differ", `PLOTS.every((p) => new Set(p.view.all.map((s) => JSON.stringify(p.view.look(s)))).size === p.view.all.length)`)

	// Everything by Tab: skip link, three lists, the button, each chart and each line.
	p.do("to the top", script(`document.activeElement.blur(); scrollTo(0, 0)`))
	order := ""
	for range 9 {
		p.do("tab", chromedp.KeyEvent(kb.Tab))
		order += p.text(`(() => { const e = document.activeElement; const o = getComputedStyle(e); return (e.id || e.className || e.tagName) + (o.outlineStyle !== "none" && parseFloat(o.outlineWidth) >= 2 ? "" : "(no outline)") + " "; })()`)
	}
	if !strings.HasPrefix(order, "skip host device span hold chart BUTTON BUTTON ") || strings.Contains(order, "no outline") {
		t.Errorf("Tab goes to %s", order)
	}
	p.do("into a chart", script(`document.querySelector("#plot-throughput .chart").focus()`), chromedp.KeyEvent(kb.Home))
	p.wait("the time under the cursor", `document.querySelector("#plot-throughput .at").textContent === clock(state.times[0] * 1000)`)
	p.wait("the same time in another plot", `document.querySelector("#plot-pause .at").textContent === clock(state.times[0] * 1000)`)
	p.wait("the values there", `document.querySelector("#plot-pause .legend b").textContent === "0.1 %"`)
	p.do("on", chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	p.wait("two on", `document.querySelector("#plot-throughput .at").textContent === clock(state.times[2] * 1000)`)
	p.shot("cursor")
	p.do("back", chromedp.KeyEvent(kb.Escape))
	p.wait("the newest values", `document.querySelector("#plot-throughput .at").textContent === "" && document.querySelector("#plot-pause .legend b").textContent === "18.1 %"`)
	p.do("a line off", script(`document.querySelector("#plot-pause .legend button").focus()`), chromedp.KeyEvent(kb.Enter))
	p.wait("it is off", `document.querySelector("#plot-pause .legend button").getAttribute("aria-pressed") === "false" && PLOTS[1].view.u.series[1].show === false`)

	// A recording of one instant has findings and says why it has no plots.
	p.do("by the address", script(`location.hash = "#instant"`))
	p.wait("why there is nothing", `state.host === "instant" && document.querySelector("#note").textContent.includes("one instant") && [...document.querySelectorAll(".chart.none")].every((c) => c.textContent.includes("no rates in this recording"))`)
	p.shot("one-instant")
	p.clean()
}

// Who wants less motion gets a picture every few seconds.
func TestReducedMotion(t *testing.T) {
	var h changing
	h.set("mlx5_0")
	p := open(t, rules(t, rule), h.host("node1"))
	p.size(1280, 900, "light", false, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	p.do("open", chromedp.Navigate(p.url+"/"))
	p.wait("what to want", `calm.matches`)
	p.wait("several instants at once", `(() => { const w = window; if (w.steps === undefined) { w.steps = []; const t = take; take = (a) => { w.steps.push(a.times.length); t(a); }; } return w.steps.some((n) => n >= 8); })()`)
	p.clean()
}
