package apiserver

import (
	"crypto/tls"
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"
	"k8s.io/client-go/rest"
)

// serviceAccountPrefix begins the names of users that are service accounts.
const serviceAccountPrefix = "system:serviceaccount:"

// Users returns the names that the current credentials say that the user has: the common name of the
// client certificate, and the service account of the token. Nothing is verified, and the API server
// is not asked. Other credentials name nobody. The result must not be changed.
func (c *Connection) Users() []string { return *c.users.Load() }

func usersOf(config *rest.Config) []string {
	var users []string
	if pair, err := tls.X509KeyPair(config.CertData, config.KeyData); err == nil && pair.Leaf.Subject.CommonName != "" {
		users = append(users, pair.Leaf.Subject.CommonName)
	}
	if account := subjectOf(config.BearerToken); strings.HasPrefix(account, serviceAccountPrefix) {
		users = append(users, account)
	}
	return users
}

// subjectOf returns the subject of a JSON Web Token; empty if the token is none.
func subjectOf(token string) string {
	parts := strings.Split(token, ".")
	const parted = 3
	if len(parts) != parted {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Subject
}
