package attackpaths

import "testing"

// TestTheTableFindsWhatAResultLacks leaves a holding out of a result.
func TestTheTableFindsWhatAResultLacks(t *testing.T) {
	for rule, holding := range map[string]string{
		"get secrets@":                  "Secret shop/key",
		"list secrets@":                 "Secret shop/key",
		"watch secrets@":                "Secret shop/key",
		"patch secrets@ key":            "Secret shop/key",
		"delete secrets@":               "Secret shop/key",
		"deletecollection secrets@":     "Secret shop/key",
		"create serviceaccounts/token@": "ServiceAccount shop/db",
	} {
		t.Run(rule, func(t *testing.T) {
			ctx := t.Context()
			newest.begin(t, opaque("shop", "key")+roleOf("r", "shop", "shop/web", rule))
			e, err := newest.newExecutor(ctx, accountWeb, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, complete := range []bool{true, false} {
				a := e.newAttempts(newest.reach(t, accountWeb, nil, false))
				for h := range a.held {
					if !complete && text(h) == holding {
						delete(a.held, h)
					}
				}
				a.plan(ctx)
				failures, answered := a.tryTable(ctx)
				if found := len(failures) > 0; found == complete || answered == 0 {
					t.Errorf("complete %t: %d answers, %v", complete, answered, failures)
				}
			}
		})
	}
}
