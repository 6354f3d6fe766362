package attackpaths

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// contents finds secrets in answers.
type contents struct {
	// texts are the values in secrets, encoded and not, and where they are from.
	texts map[string]holding
	// allowed are the holdings that may be in an answer.
	allowed func(holding) bool
}

// shortest is the length of a value that occurs nowhere by chance.
const shortest = 12

// secretContents reads the secrets of the cluster.
func (w *world) secretContents(ctx context.Context, allowed func(holding) bool) (*contents, error) {
	var list corev1.SecretList
	if err := w.admin.get(ctx, secrets.in("")).into(&list); err != nil {
		return nil, err
	}
	c := &contents{texts: map[string]holding{}, allowed: allowed}
	for i := range list.Items {
		s := &list.Items[i]
		h := holding{Kind: attackpaths.Secret, Namespace: s.Namespace, Name: s.Name}
		for key, value := range s.Data {
			// The certificate of the cluster and the namespace are no secrets.
			if len(value) < shortest || key == corev1.ServiceAccountRootCAKey || key == corev1.ServiceAccountNamespaceKey {
				continue
			}
			for _, text := range []string{string(value), base64.StdEncoding.EncodeToString(value)} {
				if old, ok := c.texts[text]; !ok || !allowed(old) {
					c.texts[text] = h // who has one of two secrets with the same content may have it
				}
			}
		}
	}
	return c, nil
}

// jwt is a token with its claims.
var jwt = regexp.MustCompile(`eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]+`)

// found says what an answer has that it may not have; nil for nothing.
func (c *contents) found(a answer) error {
	body := string(a.body)
	for text, h := range c.texts {
		if !c.allowed(h) && strings.Contains(body, text) {
			return fmt.Errorf("%s answers with the content of %s", a.request, h)
		}
	}
	for _, m := range jwt.FindAllStringSubmatch(body, -1) {
		if h, ok := subjectOfToken(m[1]); !ok || !c.allowed(h) {
			return fmt.Errorf("%s answers with a token of %s", a.request, h)
		}
	}
	return nil
}

// subjectOfToken is the service account of a token, from its claims.
func subjectOfToken(claims string) (holding, bool) {
	decoded, err := base64.RawURLEncoding.DecodeString(claims)
	if err != nil {
		return holding{}, false
	}
	var subject struct{ Sub string }
	if json.Unmarshal(decoded, &subject) != nil {
		return holding{}, false
	}
	parts := strings.Split(strings.TrimPrefix(subject.Sub, "system:serviceaccount:"), ":")
	if len(parts) != 2 {
		return holding{}, false
	}
	return holding{Kind: attackpaths.ServiceAccount, Namespace: parts[0], Name: parts[1]}, true
}
