package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	osexec "os/exec"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// The limits of what a program writes: to standard output, and to standard error before more is
// dropped. maxMessage is how much of the latter an error has.
const (
	maxOutput  = 64 << 10
	maxStderr  = 4 << 10
	maxMessage = 300
)

// The defaults of [Program].
const (
	DefaultTimeout       = 10 * time.Second
	DefaultMaxConcurrent = 8
)

// apiVersion is the version of the documents.
const apiVersion = v1alpha1.Group + "/" + v1alpha1.Version

// path is the PATH of programs, whose environment has nothing else that is not configured.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Program is how a program is run. No shell is involved.
type Program struct {
	// Command is the absolute path of the program, and its arguments.
	Command []string
	// Environment has NAME=VALUE in addition to PATH.
	Environment []string
	// Timeout is how long the program may run. It is killed then, with all processes of its group.
	Timeout time.Duration
	// MaxConcurrent is how many of these programs run at the same time. Others wait, until the
	// deadline of their request.
	MaxConcurrent int
}

// runner runs one program. It is safe for concurrent use.
type runner struct {
	Program
	slots chan struct{}
}

func newRunner(p Program) *runner { return &runner{p, make(chan struct{}, p.MaxConcurrent)} }

// exchange gives the program a document, and decodes the document that it answers with.
func (r *runner) exchange(ctx context.Context, in []byte, response document, kind string) error {
	out, err := r.run(ctx, in)
	if err != nil {
		return err
	}
	return r.decode(out, response, kind)
}

// document is a document with apiVersion and kind.
type document interface{ GetObjectKind() schema.ObjectKind }

// Header begins a document.
func Header(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind} }

// decode decodes what a program wrote.
func (r *runner) decode(out []byte, response document, kind string) error {
	if err := strictjson.Unmarshal(out, response, strictjson.Options{}); err != nil {
		return &Failed{r.Command[0], "wrote something else than one " + kind + ": " + err.Error(), true}
	}
	if got, want := response.GetObjectKind().GroupVersionKind(), schema.FromAPIVersionAndKind(apiVersion, kind); got != want {
		return r.invalid("it is %.100q, want %q", got, want)
	}
	return nil
}

// Failed is the error of a program that did not decide.
type Failed struct {
	program, problem string
	// Answered is true if the program ended with status 0, and wrote something that is not an answer.
	Answered bool
}

func (f *Failed) Error() string { return f.program + " " + f.problem }

// invalid is the error for a document whose values a program may not write.
func (r *runner) invalid(format string, args ...any) error {
	return &Failed{r.Command[0], "wrote an invalid document: " + fmt.Sprintf(format, args...), true}
}

// run returns what the program writes to standard output.
func (r *runner) run(ctx context.Context, in []byte) ([]byte, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%d of %s run, the limit: %w", r.MaxConcurrent, r.Command[0], ctx.Err())
	}
	limited, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	out, messages := bounded{most: maxOutput, exceeded: cancel}, bounded{most: maxStderr, exceeded: func() {}}
	cmd := osexec.CommandContext(limited, r.Command[0], r.Command[1:]...)
	cmd.Env, cmd.Dir = append([]string{path}, r.Environment...), "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &messages
	cmd.WaitDelay = time.Second // for processes outside of the group that keep the pipes open
	killGroup := inOwnGroup(cmd)
	err := cmd.Run()
	if err != nil {
		killGroup()
	}
	var problem string
	switch {
	case out.full:
		problem = fmt.Sprintf("wrote %d KiB or more", maxOutput>>10)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("run %s: %w", r.Command[0], ctx.Err())
	case limited.Err() != nil:
		problem = fmt.Sprintf("did not end within %s", r.Timeout)
	case errors.Is(err, osexec.ErrWaitDelay):
		problem = "ended, and left a process with its output"
	case cmd.ProcessState == nil:
		return nil, fmt.Errorf("start a program: %w", err)
	case err != nil:
		problem = "ended with " + err.Error()
	default:
		return out.text, nil
	}
	if said := r.said(string(messages.text), in, out.text); said != "" {
		problem += "; it says: " + said
	}
	return nil, &Failed{program: r.Command[0], problem: problem}
}

// said returns what the program says, for the log: without parts of documents, and of the values of its variables, because both
// may be secrets.
func (r *runner) said(message string, documents ...[]byte) string {
	for _, variable := range r.Environment {
		_, value, _ := strings.Cut(variable, "=")
		documents = append(documents, []byte(value))
	}
	return withoutCopies(message, documents...)
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	text     []byte
	most     int
	full     bool
	exceeded func()
}

// Write implements io.Writer. It never fails, so that a program is not ended by what it writes to
// standard error.
func (b *bounded) Write(text []byte) (int, error) {
	b.text = append(b.text, text[:min(len(text), b.most-len(b.text))]...)
	if len(b.text) == b.most {
		b.full = true
		b.exceeded()
	}
	return len(text), nil
}

// copied is how many bytes in a row make a copy of evidence.
const copied = 12

// withoutCopies returns a message in one line, without parts that also are in one of the documents.
func withoutCopies(message string, documents ...[]byte) string {
	message = strings.Join(strings.Fields(message), " ")
	places := map[string][]int{}
	for i := range max(len(message)-copied+1, 0) {
		places[message[i:i+copied]] = append(places[message[i:i+copied]], i)
	}
	hidden := make([]bool, len(message))
	for _, document := range documents {
		for i := range max(len(document)-copied+1, 0) {
			part := string(document[i : i+copied])
			for _, at := range places[part] {
				for n := range copied {
					hidden[at+n] = true
				}
			}
			delete(places, part) // its places are hidden: evidence of one letter has the part many times
		}
	}
	var b strings.Builder
	for i := 0; i < len(message) && b.Len() < maxMessage; i++ {
		if !hidden[i] {
			b.WriteByte(message[i])
		} else if i == 0 || !hidden[i-1] {
			b.WriteString("…")
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// Environ returns the variables of a program: NAME=VALUE stays, NAME alone has the value that it has here.
func Environ(configured []string, lookup func(string) (string, bool)) (all []string) {
	for _, variable := range configured {
		if strings.Contains(variable, "=") {
			all = append(all, variable)
		} else if value, ok := lookup(variable); ok {
			all = append(all, variable+"="+value)
		}
	}
	return all
}
