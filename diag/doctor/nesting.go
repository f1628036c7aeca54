package doctor

import (
	"fmt"
	"strings"
)

// maxNesting bounds brackets in brackets in a file of rules, of which the deepest good
// one has two, and dashes and tags on one line. The YAML reader's time grows with the square of
// the depth, so this is looked at before it.
const maxNesting = 20

// checkNesting refuses a text that is nested too deep, or has too many rules. It knows as much of YAML as it
// takes to leave out quoted texts and comments.
func checkNesting(name string, text []byte) error {
	depth, line := 0, 1
	quote, before := byte(0), byte('\n')
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			line++
		case quote != 0:
			if c == '\\' && quote == '"' {
				i++
			} else if c == quote {
				quote = 0
			}
			before = c
			continue
		}
		switch starts := strings.IndexByte("\n\t [{,:", before) >= 0; {
		case (c == '\'' || c == '"') && starts:
			quote = c
		case c == '#' && starts:
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == '[' || c == '{':
			depth++
		case (c == ']' || c == '}') && depth > 0:
			depth--
		}
		if depth > maxNesting {
			return fmt.Errorf("%s:%d: brackets are nested more than %d deep", name, line, maxNesting)
		}
		before = c
	}
	line = 0
	rules := 0
	for l := range strings.Lines(string(text)) {
		line++
		dashes := 0
		for _, word := range strings.Fields(l) {
			if word != "-" && word != "?" && word[0] != '!' && word[0] != '&' {
				break
			}
			dashes++
		}
		if strings.HasPrefix(l, "- ") {
			rules++
		}
		if rules > maxRules {
			return fmt.Errorf("%s:%d: more than %d rules", name, line, maxRules)
		}
		if dashes > maxNesting {
			return fmt.Errorf("%s:%d: lists are nested more than %d deep", name, line, maxNesting)
		}
	}
	return nil
}
