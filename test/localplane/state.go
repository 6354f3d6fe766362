package localplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/node-authorizer/node-authorizer/test/localplane/internal/process"
)

const stateFile = "localplane.json"

// State is the content of localplane.json in the folder of a running plane, with which
// other processes find, use and stop it.
type State struct {
	// Ready is true once every component and every requested node is ready.
	Ready bool `json:"ready"`
	// Owner is the process whose end stops the plane.
	Owner process.Identity `json:"owner"`
	// Server is the address of kube-apiserver.
	Server string `json:"server"`
	// AdminKubeconfig is the path of an administrator's kubeconfig.
	AdminKubeconfig string `json:"adminKubeconfig"`
	// LogDir is the folder with one log per process.
	LogDir string `json:"logDir"`
	// Processes are the running processes, in the order of their start.
	Processes []ProcessState `json:"processes"`
}

// ProcessState is one process of a plane.
type ProcessState struct {
	Name string `json:"name"`
	process.Identity
	Log string `json:"log"`
	// Scratch are paths outside of the plane's folder that the process leaves behind.
	Scratch []string `json:"scratch,omitempty"`
}

// ReadState returns the state of the plane in dir. The error is fs.ErrNotExist
// when there is none.
func ReadState(dir string) (*State, error) {
	path := layout{dir: dir}.state()
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the state of the control plane: %w", err)
	}
	state := &State{}
	if err := json.Unmarshal(text, state); err != nil {
		return nil, fmt.Errorf("read the state of the control plane in %s: %w", path, err)
	}
	return state, nil
}

// Running reports whether the owner still runs.
func (s *State) Running() bool { return s.Owner.Running() }

func (s *State) write(path string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write the state of the control plane: %w", err)
	}
	partial := path + ".partial"
	if err := os.WriteFile(partial, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the state of the control plane: %w", err)
	}
	if err := os.Rename(partial, path); err != nil {
		return fmt.Errorf("write the state of the control plane: %w", err)
	}
	return nil
}

// ownerGrace is how long an owner may take to stop its plane gracefully.
const ownerGrace = 90 * time.Second

// Down stops the plane in dir, even of another process, and reports whether there was
// one. Logs stay; the next plane in the folder replaces them. A plane of the calling
// process is an error: it has [Plane.Stop].
func Down(dir string) (wasThere bool, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return false, fmt.Errorf("find the control plane: %w", err)
	}
	state, err := ReadState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	wasThere = state.Running()
	if wasThere && state.Owner.PID == os.Getpid() {
		return true, fmt.Errorf("the control plane in %s belongs to this process: call its Stop", dir)
	}
	if err := state.Owner.Stop(ownerGrace); err != nil {
		return wasThere, fmt.Errorf("end the owner of the control plane: %w", err)
	}
	// This finds processes only after a crash of the owner. It may have started some
	// since its state was read above.
	if last, err := ReadState(dir); err == nil {
		state = last
	}
	for i := len(state.Processes) - 1; i >= 0; i-- {
		p := state.Processes[i]
		wasThere = wasThere || p.Running()
		if err := p.Kill(); err != nil {
			return wasThere, fmt.Errorf("end %s: %w", p.Name, err)
		}
		removeScratch(p.Scratch)
	}
	if err := os.Remove(layout{dir: dir}.state()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return wasThere, fmt.Errorf("remove the state of the control plane: %w", err)
	}
	return wasThere, nil
}

func removeScratch(paths []string) {
	for _, path := range paths {
		// Errors are ignored: only an unused file in a temporary folder would remain.
		_ = os.RemoveAll(path)
	}
}
