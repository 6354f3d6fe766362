package localplane

import (
	"fmt"
	"os"
	"path/filepath"
)

// SupervisorLog is the name of the log of a process that only owns a plane. It exists
// before the plane and is kept when the plane starts.
const SupervisorLog = "supervisor.log"

// layout has the paths of all files of a plane: its folder, and the folder of its logs.
type layout struct{ dir, logs string }

func (l layout) pki() string             { return filepath.Join(l.dir, "pki") }
func (l layout) etcdPKI() string         { return filepath.Join(l.dir, "pki", "etcd") }
func (l layout) frontProxyPKI() string   { return filepath.Join(l.dir, "pki", "front-proxy") }
func (l layout) kubeconfigs() string     { return filepath.Join(l.dir, "kubeconfig") }
func (l layout) etcdData() string        { return filepath.Join(l.dir, "etcd") }
func (l layout) nodes() string           { return filepath.Join(l.dir, "nodes") }
func (l layout) node(name string) string { return filepath.Join(l.nodes(), name) }
func (l layout) state() string           { return filepath.Join(l.dir, stateFile) }

func (l layout) nodeKubeconfig(name string) string {
	return filepath.Join(l.node(name), "kubeconfig")
}

func (l layout) kubeconfig(name string) string {
	return filepath.Join(l.kubeconfigs(), name+".kubeconfig")
}

func (l layout) log(name string) string {
	return filepath.Join(l.logs, name+".log")
}

// prepare removes the files of an earlier plane and makes the folders of the next one.
// Other files are kept.
func (l layout) prepare() error {
	leftovers := []string{l.pki(), l.kubeconfigs(), l.etcdData(), l.nodes()}
	logs, err := filepath.Glob(filepath.Join(l.logs, "*"))
	if err != nil {
		return fmt.Errorf("list the logs of an earlier control plane: %w", err)
	}
	for _, log := range logs {
		if filepath.Base(log) != SupervisorLog {
			leftovers = append(leftovers, log)
		}
	}
	for _, old := range leftovers {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("remove what an earlier control plane left in %s: %w", l.dir, err)
		}
	}
	for _, dir := range []string{l.etcdPKI(), l.frontProxyPKI(), l.kubeconfigs(), l.etcdData(), l.nodes(), l.logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the folders of the control plane: %w", err)
		}
	}
	return nil
}
