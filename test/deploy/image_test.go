package deploy

import (
	"strings"
	"testing"
)

// stages returns the stages of the Dockerfile, each with its first instruction.
func stages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, line := range strings.Split(read(t, deployFolder, "Dockerfile"), "\n") {
		switch {
		case strings.HasPrefix(line, "FROM "):
			found = append(found, line+"\n")
		case len(found) > 0:
			found[len(found)-1] += line + "\n"
		}
	}
	return found
}

// The default image runs as a user without rights. The units of kops run it with files of
// root, without setting a user: for them there is a separate target.
func TestImages(t *testing.T) {
	all := stages(t)
	last := all[len(all)-1]
	if !strings.Contains(last, "\nUSER 65532:65532\n") {
		t.Errorf("the last stage is\n%s", last)
	}
	var root string
	for _, stage := range all {
		if strings.HasPrefix(stage, "FROM program AS root\n") {
			root = stage
		}
	}
	if !strings.Contains(root, "\nUSER 0:0\n") || !strings.HasPrefix(last, "FROM program\n") {
		t.Errorf("the stage for kops' units is %q, the last one %q", root, last)
	}
	for _, page := range []string{"docs/guides/bootstrap-move.md", "deploy/machine/README.md"} {
		if !strings.Contains(read(t, "../..", page), "--target=root") {
			t.Errorf("%s does not name the image for kops' units", page)
		}
	}
}
