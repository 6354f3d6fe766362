package protocol

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// echo allows what was loaded as an attachment, and fails on a state without.
type echo struct{ names map[string]bool }

func (e *echo) Load(s State) error {
	if len(s.VolumeAttachments) == 0 {
		return errors.New("nothing attached")
	}
	e.names = map[string]bool{}
	for _, va := range s.VolumeAttachments {
		e.names[va.Name] = true
	}
	return nil
}

func (e *echo) Decide(r *Request) Decision {
	if e.names[r.Name] {
		return Allow
	}
	return NoOpinion
}

func (e *echo) LoadWrites(s WriteState) error {
	if len(s.Nodes) == 0 {
		return errors.New("no nodes")
	}
	return nil
}

func (e *echo) Admit(w *Write) (Admitted, error) {
	if w.Operation == "" {
		return Admitted{}, errors.New("no operation")
	}
	return Admitted{Status: len(w.Name)}, nil
}

func (e *echo) Gate(name string) (Gate, bool) { return Gate{Enabled: true}, name == "Known" }

func TestServe(t *testing.T) {
	for _, tc := range []struct{ rule, in, want string }{
		{"the end of the questions ends the answers", "", ""},
		{
			"a state is kept for later questions, and replaced by the next",
			`{"state":{"volumeAttachments":[{"name":"a"}]}}
			 {"requests":[{"name":"a"},{"name":"b"}]}
			 {"state":{"volumeAttachments":[{"name":"b"}]},"requests":[{"name":"a"},{"name":"b"}]}`,
			"{}\n{\"decisions\":\"AN\"}\n{\"decisions\":\"NA\"}\n",
		},
		{"a state that cannot be loaded is answered by its error", `{"state":{}}`, "{\"error\":\"nothing attached\"}\n"},
		{
			"writes are answered in order", `{"writes":[{"operation":"UPDATE","name":"ab"},{"operation":"UPDATE","name":"a"}]}`,
			"{\"admitted\":[{\"status\":2},{\"status\":1}]}\n",
		},
		{
			"a write that cannot be put to the plugin is answered by the error", `{"writes":[{"operation":"UPDATE"},{}]}`,
			"{\"error\":\"write 1: no operation\"}\n",
		},
		{"a state of writes that cannot be loaded is answered by its error", `{"writeState":{}}`, "{\"error\":\"no nodes\"}\n"},
		{
			"gates that the minor lacks are left out", `{"gates":["Known","Unknown"]}`,
			"{\"gates\":{\"Known\":{\"enabled\":true,\"locked\":false}}}\n",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var out strings.Builder
			if err := Serve(strings.NewReader(tc.in), &out, &echo{}); err != nil {
				t.Fatal(err)
			}
			if out.String() != tc.want {
				t.Errorf("got %q, want %q", out.String(), tc.want)
			}
		})
	}
}

func TestServeRefusesWhatIsNoQuestion(t *testing.T) {
	for _, in := range []string{"no JSON", `{"state":7}`, `{"state"`} {
		if err := Serve(strings.NewReader(in), io.Discard, &echo{}); err == nil {
			t.Errorf("%q was taken for a question", in)
		}
	}
}
