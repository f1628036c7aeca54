package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/internal/play"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// simulated is the report of a scenario of the library beside its first other side, as
// verbena sim run writes it.
func simulated(t *testing.T, name string) string {
	t.Helper()
	src, err := play.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	run := func(sets []string) *play.Outcome {
		sc, err := src.Scenario(play.Change{Sets: sets})
		if err != nil {
			t.Fatal(err)
		}
		o, err := sc.Run(t.Context(), &play.Files{}, play.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := run(nil)
	sides := []play.Side{{Name: "as it is", Run: o.Result}}
	var lead []string
	for _, v := range lab.Variants(name) {
		lead = append(lead, v.Name+": "+v.Says)
		sides = append(sides, play.Side{Name: v.Name, Run: run(v.All()).Result})
	}
	if len(sides) < 2 || len(o.Checks) == 0 {
		t.Fatalf("%s has %d sides and %d expectations", name, len(sides), len(o.Checks))
	}
	var b strings.Builder
	if err := report.WriteHTML(&b, o.Result, o.Page([]report.Section{play.Beside("THE OTHER SIDE", lead, sides)}, "verbena sim run "+name, "test")); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The simulator's report fits a phone and a desk, light and dark: nothing but tables and
// charts is to be scrolled sideways, and these in boxes of their own; nothing is cut off,
// covered or too small to read, and all stands out from its ground.
func TestReportOfTheSimulator(t *testing.T) {
	judge.Need(t, "chromium")
	// One has a deep tree of pauses, a storm and wide tables, the other hosts at their limit.
	for _, name := range []string{"deadlock", "rss-off"} {
		text := simulated(t, name)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" { // the browser's own wish for an icon
				w.WriteHeader(http.StatusNoContent)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if _, err := w.Write([]byte(text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}))
		t.Cleanup(srv.Close)
		p := &page{t: t, what: name, url: srv.URL, ctx: chromium.tab(t)}
		if err := chromedp.Listen(p.ctx, p.heard); err != nil {
			t.Fatal(err)
		}
		p.do("start", command(network.Enable, network.EnableParams{}), command(runtime.Enable, cdp.Empty{}), command(log.Enable, cdp.Empty{}))
		p.do("open", chromedp.Navigate(p.url+"/"))
		for _, c := range []struct {
			name          string
			width, height int64
			scheme        string
			phone         bool
		}{
			{"desk-light", 1280, 900, "light", false},
			{"desk-dark", 1280, 900, "dark", false},
			{"phone-light", 360, 740, "light", true},
			{"phone-dark", 360, 740, "dark", true},
		} {
			p.size(c.width, c.height, c.scheme, c.phone)
			p.wait("all of "+name+" at "+c.name, fmt.Sprintf(`innerWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, c.width, c.scheme)+` && document.querySelectorAll("figure svg").length >= 3 && [...document.querySelectorAll("section h2")].some((h) => h.textContent === "THE OTHER SIDE")`)
			p.do("open all", script(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`))
			p.legible(name + " at " + c.name)
			for _, j := range judges {
				if got := p.text(j.script); got != "" {
					t.Errorf("%s at %s: %s: %s", name, c.name, j.says, got)
				}
			}
			p.glance(c.name)
			p.do("look at the charts", script(`document.querySelector("#charts").scrollIntoView()`))
			p.glance(c.name + "-charts")
			p.do("back", script(`scrollTo(0, 0)`))
			if t.Failed() {
				p.shot(c.name + "-failed")
			}
		}
		p.mu.Lock()
		for _, w := range append(p.wrong, p.others...) {
			t.Errorf("%s: the browser complains of, or asks for, %s", name, w)
		}
		p.mu.Unlock()
	}
}
