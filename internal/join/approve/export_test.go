package approve

import "github.com/node-authorizer/node-authorizer/verdict"

// Rule is one check that requests of a kind have to pass.
type Rule struct {
	Code  verdict.Code
	Text  string
	Facts bool
}

// Rules returns the checks for a kind of request, in order.
func Rules(kind Kind) []Rule {
	var rules []Rule
	for _, facts := range []bool{false, true} {
		for i := range checks {
			if c := &checks[i]; c.facts == facts && c.of(kind) {
				rules = append(rules, Rule{Code: c.code, Text: c.rule, Facts: facts})
			}
		}
	}
	return rules
}
