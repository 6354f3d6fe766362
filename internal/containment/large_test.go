package containment

import (
	"fmt"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

func TestWhatIsKeptOfASpecThatIsTooLarge(t *testing.T) {
	const subject = `{"namespace":"a","name":"b"}`
	for _, tc := range []struct {
		rule, spec, want string
		left             unread
	}{
		{
			"the mode and the subjects", `{"x":[{}],"subjects":[` + subject + `],"mode":"Enforce","y":7}`,
			`{"mode":"Enforce","subjects":[` + subject + `]}`, 0,
		},
		{
			"the last of repeated fields, as API servers do",
			`{"mode":"Enforce","subjects":[7],"subjects":[` + subject + `],"mode":"Observe"}`, "", 0,
		},
		{"another case is another field", `{"Mode":"Enforce","subjects":[` + subject + `]}`, "", 0},
		{"nothing of one that observes", `{"mode":"Observe","subjects":[` + subject + `]}`, "", 0},
		{"a mode of another type", `{"mode":{"a":1},"subjects":[` + subject + `]}`, "", 0},
		{"subjects that can be read", `{"mode":"Enforce","subjects":[7,` + subject + `,null,[` + subject + `],{"namespace":` +
			`"` + strings.Repeat("a", maxSubject) + `"}]}`, `{"mode":"Enforce","subjects":[` + subject + `,null]}`, 3},
		{"no subjects", `{"mode":"Enforce"}`, "", 0},
		{"subjects that are no list", `{"subjects":{"a":` + subject + `},"mode":"Enforce"}`, "", allUnread},
		{"what is no object", `[` + subject + `]`, "", 0},
		{"what ends too early", `{"mode":"Enforce","subjects":[` + subject, "", 0},
		{"nothing", ``, "", 0},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got, left := extract([]byte(tc.spec)); string(got) != tc.want || left != tc.left {
				t.Errorf("got %s, and %d are not read; want %s and %d", got, left, tc.want, tc.left)
			}
		})
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	long := fmt.Sprintf(`{"namespace":%q,"name":%q}`, strings.Repeat("a", 63), strings.Repeat("b", 253))
	got, left := extract([]byte(`{"mode":"Enforce","subjects":[` + strings.Repeat(long+",", 9_999) + long + `]}`))
	if left != 10_000-nodescope.MaxListed || len(got) > nodescope.MaxListed*maxSubject || len(got) < nodescope.MaxListed*len(long) {
		t.Errorf("%d bytes are kept, and %d subjects are not", len(got), left)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add([]byte(`{"x":[{}],"subjects":[{"namespace":"a","name":"b"},7],"mode":"Enforce"}`))
	for spec := range oddjson.Seeds(
		`{"mode":"Enforce","subjects":[{"namespace":"a","name":"b"}]}`, oddjson.Places(v1alpha1.NodeScopeSpec{}),
	) {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		kept, _ := extract(spec)
		if kept == nil {
			return
		}
		read := readableSpec(kept)
		if len(kept) > maxSpec || read.Mode != v1alpha1.Enforce || len(read.Subjects) == 0 {
			t.Errorf("of %q, %q is kept", spec, kept)
		}
	})
}
