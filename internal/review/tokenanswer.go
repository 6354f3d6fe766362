package review

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/iam"
)

// Answers are encoded without reflection: encoding is half of the cost of authenticating a
// cached token.

// typicalAnswer is the initial buffer size in bytes. Few answers are larger.
const typicalAnswer = 1 << 10

func (r *TokenReview) refuse(why string) []byte {
	w := r.begin("false")
	w.member(`,"error":`, why)
	return append(w, "}}"...)
}

func (r *TokenReview) authenticated(user *iam.User, audiences []string) []byte {
	w := r.begin("true")
	w.member(`,"user":{"username":`, user.Username)
	if user.UID != "" {
		w.member(`,"uid":`, user.UID)
	}
	if len(user.Groups) > 0 {
		w.list(`,"groups":`, user.Groups)
	}
	if len(user.Extra) > 0 {
		w = append(w, `,"extra":{`...)
		keys := slices.AppendSeq(make([]string, 0, len(user.Extra)), maps.Keys(user.Extra))
		slices.Sort(keys)
		for i, key := range keys {
			if i > 0 {
				w = append(w, ',')
			}
			w.member("", key)
			w.list(":", user.Extra[key])
		}
		w = append(w, '}')
	}
	w = append(w, '}')
	if len(audiences) > 0 {
		w.list(`,"audiences":`, audiences)
	}
	return append(w, "}}"...)
}

// begin writes the beginning of an answer, which is the same in both versions.
func (r *TokenReview) begin(authenticated string) jsonWriter {
	w := make(jsonWriter, 0, typicalAnswer)
	w.member(`{"kind":`, tokenReviewKind)
	w.member(`,"apiVersion":`, r.apiVersion)
	return append(append(w, `,"status":{"authenticated":`...), authenticated...)
}

// jsonWriter is a partially written document.
type jsonWriter []byte

// member writes a name and a string.
func (w *jsonWriter) member(name, text string) {
	*w = append(*w, name...)
	// An error means that invalid UTF-8 was replaced.
	*w, _ = jsontext.AppendQuote(*w, text)
}

// list writes a name and a list of strings.
func (w *jsonWriter) list(name string, texts []string) {
	*w = append(append(*w, name...), '[')
	for i, text := range texts {
		if i > 0 {
			*w = append(*w, ',')
		}
		w.member("", text)
	}
	*w = append(*w, ']')
}
