// Package browser has the tests that open the page of verbena monitor in a real
// browser, Debian's chromium: that plots move, findings appear, hosts can be chosen,
// nothing of elsewhere is loaded and it fits a phone.
//
// It owns no code but tests. Reading order: monitor_test.go, hosts_test.go, chromium_test.go (one browser
// for all).
package browser
