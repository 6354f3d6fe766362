package containment

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// volatile are the fields that differ whenever an object is written, or a request is sent again.
var volatile = map[string]bool{
	"resourceVersion": true, "uid": true, "creationTimestamp": true, "managedFields": true, "token": true, "expirationTimestamp": true,
}

// differs compares two answers to the same request, byte by byte except for volatile fields. It is empty if they
// are the same.
func (a answer) differs(b answer) string {
	switch {
	case a.status != b.status:
		return fmt.Sprintf("%s, and %s", a, b)
	case a.headers != b.headers:
		return fmt.Sprintf("headers %s, and %s", a.headers, b.headers)
	}
	one, other := stable(a.body), stable(b.body)
	if one == other {
		return ""
	}
	at := 0
	for at < min(len(one), len(other)) && one[at] == other[at] {
		at++
	}
	part := func(text string) string { return text[max(0, at-60):min(len(text), at+100)] }
	return fmt.Sprintf("%q, and %q", part(one), part(other))
}

// stable returns a body without volatile fields. What is not JSON, it returns as it is. Of the events, which the
// servers write too, nothing remains.
func stable(body []byte) string {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return string(body)
	}
	if list, ok := value.(map[string]any); ok && list["kind"] == "EventList" {
		return "events"
	}
	text, err := json.Marshal(withoutVolatile(value))
	if err != nil {
		return err.Error()
	}
	return generated.ReplaceAllString(string(text), "$1-")
}

// generated are names that API servers generate.
var generated = regexp.MustCompile(`"(node-a|web-node-a|node|kube-api-access)-?[bcdfghjklmnpqrstvwxz2456789]{5}"`)

func withoutVolatile(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if volatile[key] {
				delete(v, key)
				continue
			}
			v[key] = withoutVolatile(inner)
		}
	case []any:
		for i := range v {
			v[i] = withoutVolatile(v[i])
		}
	}
	return value
}
