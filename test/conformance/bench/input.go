package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// fileCluster is the cluster that is read from a file. On every node are pods of
// the same few daemon sets, replicas of deployments, and pods with a volume.
type fileCluster struct {
	nodes       int
	podsPerNode int // a sixth for daemon sets, a sixth with a volume
}

const (
	replicasPerApp   = 12
	appsPerNamespace = 25
	daemonNamespace  = "node-services"
)

func (l fileCluster) pods() int     { return l.nodes * l.podsPerNode }
func (l fileCluster) objects() int  { return l.nodes + l.pods() + 2*l.nodes*l.stateful() }
func (l fileCluster) daemons() int  { return l.podsPerNode / 6 }
func (l fileCluster) stateful() int { return l.podsPerNode / 6 }
func (l fileCluster) replicas() int { return l.podsPerNode - l.daemons() - l.stateful() }
func appNamespace(app int) string   { return namespaceName(app / appsPerNamespace) }
func appName(app int) string        { return fmt.Sprintf("service-%06d", app) }
func daemonName(daemon int) string  { return fmt.Sprintf("agent-%02d", daemon) }

// file returns the cluster's file in a folder, as "kubectl get -A -o json"
// would write it; it is written if it is not there yet.
func (l fileCluster) file(folder string) (string, error) {
	return written(filepath.Join(folder, fmt.Sprintf("cluster-%d-nodes-%d-pods.json", l.nodes, l.pods())), l.write)
}

// written returns a file that is written if it is not there yet.
func written(name string, write func(*os.File) error) (string, error) {
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		return name, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", fmt.Errorf("making a folder for the input: %w", err)
	}
	part, err := os.Create(name + ".part")
	if err != nil {
		return "", fmt.Errorf("writing the input: %w", err)
	}
	err = errors.Join(write(part), part.Close())
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", part.Name(), err)
	}
	return name, os.Rename(part.Name(), name)
}

func (l fileCluster) write(file *os.File) error {
	s, err := newShapes()
	if err != nil {
		return err
	}
	w := newListWriter(file)
	for node := range l.nodes {
		w.add(&s.node, [nameCount]string{atName: nodeName(node), atApp: "worker"})
	}
	for node := range l.nodes {
		l.writePods(w, s, node)
	}
	l.writeVolumes(w, s)
	return w.end()
}

func (l fileCluster) writePods(w *listWriter, s *shapes, node int) {
	at := nodeName(node)
	for i := range l.daemons() {
		w.add(&s.daemon, [nameCount]string{atNode: at, atNamespace: daemonNamespace, atApp: daemonName(i), atName: l.daemonPod(node, i)})
	}
	for i := range l.replicas() {
		app := l.appOf(node, i)
		w.add(&s.replica, [nameCount]string{atNode: at, atNamespace: appNamespace(app), atApp: appName(app), atName: l.replicaPod(node, i)})
	}
	for i := range l.stateful() {
		app := l.statefulApp(node, i)
		w.add(&s.stateful,
			[nameCount]string{atNode: at, atNamespace: appNamespace(app), atApp: appName(app), atName: l.statefulPod(node, i)})
	}
}

func (l fileCluster) writeVolumes(w *listWriter, s *shapes) {
	for node := range l.nodes {
		for i := range l.stateful() {
			volume := volumeName(node*l.stateful() + i)
			namespace, claim := appNamespace(l.statefulApp(node, i)), "data-"+l.statefulPod(node, i)
			w.add(&s.volume, [nameCount]string{atNamespace: namespace, atName: volume, atApp: claim})
			w.add(&s.attachment, [nameCount]string{atNode: nodeName(node), atName: "csi-" + volume, atApp: volume})
		}
	}
}

// appOf spreads the replicas of an app over nodes.
func (l fileCluster) appOf(node, i int) int { return (i*l.nodes + node) / replicasPerApp }

// appsPerPlace is how many apps share the pods in one place on all nodes.
func (l fileCluster) appsPerPlace() int { return (l.nodes + replicasPerApp - 1) / replicasPerApp }

func (l fileCluster) statefulApp(node, i int) int {
	return (l.replicas()+i)*l.appsPerPlace() + node/replicasPerApp
}

func (l fileCluster) daemonPod(node, i int) string {
	return fmt.Sprintf("%s-x%05d", daemonName(i), node)
}

func (l fileCluster) replicaPod(node, i int) string {
	return fmt.Sprintf("%s-6d4cf56db6-x%05d", appName(l.appOf(node, i)), node)
}

func (l fileCluster) statefulPod(node, i int) string {
	return fmt.Sprintf("%s-%d", appName(l.statefulApp(node, i)), node%replicasPerApp)
}

// listWriter writes the items of a list. Errors show at its end.
type listWriter struct {
	out   *bufio.Writer
	items int
	text  []byte
}

func newListWriter(file *os.File) *listWriter {
	w := &listWriter{out: bufio.NewWriterSize(file, 1<<20)}
	w.out.WriteString("{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n")
	return w
}

func (w *listWriter) end() error {
	w.out.WriteString("\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n")
	return w.out.Flush() // which returns the error of any write before
}

func (w *listWriter) add(s *shape, names [nameCount]string) {
	names[atNumber] = fmt.Sprintf("%012x", w.items)
	w.begin()
	w.text = s.append(w.text, &names)
	w.out.Write(w.text)
}

func (w *listWriter) addObject(object any) error {
	text, err := json.MarshalIndent(object, "        ", "    ")
	if err != nil {
		return fmt.Errorf("encoding an object: %w", err)
	}
	w.begin()
	w.out.Write(append(w.text, text...))
	return nil
}

// begin puts the separator before an item into text.
func (w *listWriter) begin() {
	w.text = w.text[:0]
	if w.items > 0 {
		w.text = append(w.text, ",\n"...)
	}
	w.text = append(w.text, "        "...)
	w.items++
}
