package token

import (
	"strings"
	"testing"
	"time"
)

// FuzzCache checks that only complete credentials that are valid for long enough come out
// of the file, and that no error quotes it.
func FuzzCache(f *testing.F) {
	f.Add([]byte(""), "a")
	f.Add([]byte(`{"version":"node-authorizer-credentials/v1","credentials":{"a":{"accessKeyID":"ASIA",`+
		`"secretAccessKey":"s","sessionToken":"t","expires":"2999-01-01T00:00:00Z"}}}`),
		"a")
	f.Add([]byte(`{"version":"node-authorizer-credentials/v1","credentials":{"a":{"expires":"0"}}}`), "a")
	f.Add([]byte(`{"version":"other-secret-text"}`), "a")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text []byte, key string) {
		document, err := parseCache(text)
		if err != nil {
			if len(text) > 20 && strings.Contains(err.Error(), string(text)) {
				t.Errorf("the error quotes the file: %v", err)
			}
			return
		}
		c := &cache{key: key, document: document}
		found, ok := c.find(now)
		incomplete := found.AccessKeyID == "" || found.SecretAccessKey == "" || found.SessionToken == ""
		if ok && (incomplete || found.Expires.Before(now.Add(MinLife))) {
			t.Errorf("found %+v", found)
		}
		document.shrink()
		if len(document.Kept) > maxKept {
			t.Errorf("%d are kept", len(document.Kept))
		}
	})
}
