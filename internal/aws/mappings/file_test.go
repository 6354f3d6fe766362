package mappings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// TestFileIsNotReadWhileItIsWritten checks a file several times.
func TestFileIsNotReadWhileItIsWritten(t *testing.T) {
	const (
		first  = "mapRoles:\n- {rolearn: 'arn:aws:iam::111122223333:role/node', username: a}\n"
		second = "- {rolearn: 'arn:aws:iam::111122223333:role/ops', username: b}\n"
		third  = "- {rolearn: 'arn:aws:iam::111122223333:role/web', username: c}\n"
	)
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	live, err := New(Options{
		Sources: []v1alpha1.MappingSource{v1alpha1.FileSource}, File: path,
		Rules: iam.Rules{Partition: "aws", RolePaths: iam.MatchName, Reserved: iam.DefaultReserved()},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := file{path: path}
	for n, look := range []struct {
		rule, text string // no text: there is no file
		atOnce     bool
		want       int
	}{
		{"at the start it is read at once", first, true, 1},
		{"without a change, nothing changes", first, false, 1},
		{"it is being written", first + second, false, 1},
		{"it is still being written", first + second + third, false, 1},
		{"it has stayed the same", first + second + third, false, 3},
		{"it is being written again", first, false, 3},
		{"it is missing, and the last content stays", "", false, 3},
		{"it is back with the last seen content, and may be half-written", first, false, 3},
		{"it has stayed the same again", first, false, 1},
	} {
		if look.text == "" {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, []byte(look.text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.look(live.sources[0], look.atOnce)
		if got := live.Sources()[0].Mappings[iam.RoleMapping]; got != look.want {
			t.Errorf("look %d: %s: %d mappings, want %d", n, look.rule, got, look.want)
		}
	}
}
