package iam

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNodeNamesAreThoseOfKubernetes(t *testing.T) {
	names := []string{
		"", "a", "1", "worker-1", "ip-10-0-0-1.eu-west-1.compute.internal", "a.b", "a--b", "1.2.3.4",
		"-a", "a-", "a.-b", "a-.b", ".", "a.", ".a", "a..b", "A", "a_b", "a b", "a/b", "a:b", "a\n", "ä", "a.ä", "\xff",
		strings.Repeat("a", 64), strings.Repeat("a", 253), strings.Repeat("a", 254),
		strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 127), strings.Repeat("a.", 127) + "a",
	}
	for b := range 256 {
		names = append(names, string([]byte{byte(b)}), string([]byte{'a', byte(b), 'a'}))
	}
	for _, name := range names {
		if got, want := isNodeName(name), len(validation.IsDNS1123Subdomain(name)) == 0; got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
