// Package browser has the tests that open the pages of verbena in a real browser, Debian's
// chromium: that of verbena monitor (plots move, findings appear, hosts can be chosen) and
// the report of verbena sim; that nothing of elsewhere is loaded, and that they fit a phone.
//
// It owns no code but tests. Reading order: monitor_test.go, hosts_test.go, report_test.go,
// look_test.go (what is wrong with how a page looks), chromium_test.go (one browser for all).
package browser
