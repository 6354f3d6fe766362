// Command library asks the library what a node may read, without a cluster and
// without the command line: it fills the graph from a snapshot and decides one request.
//
//	go run ./examples/library examples/shop.snapshot pay-1 secrets payments/card-processor
//
// A snapshot is one object a line, compressed with zstd.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: library SNAPSHOT NODE RESOURCE NAMESPACE/NAME")
		os.Exit(2)
	}
	if err := ask(os.Stdout, os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(2)
	}
}

// ask writes whether the node may get the object, why, and the path.
func ask(w io.Writer, snapshot, node, resource, object string) error {
	file, err := os.Open(snapshot)
	if err != nil {
		return err
	}
	defer file.Close()
	g := graph.New()
	if err := fill(g, file); err != nil {
		return fmt.Errorf("%s: %w", snapshot, err)
	}

	namespace, name, found := strings.Cut(object, "/")
	if !found {
		return fmt.Errorf("%q is not NAMESPACE/NAME", object)
	}
	user, groups := nodeidentity.User(node)
	e := nodeauthz.New(g, kubeversion.For(kubeversion.Latest)).Explain(&access.Request{
		User: user, Groups: groups, ResourceRequest: true,
		Verb: "get", Resource: resource, Namespace: namespace, Name: name,
	})
	fmt.Fprintf(w, "%s: %s\n", e.Decision, e.Reason.Message)
	for _, edge := range e.Reason.Path {
		fmt.Fprintf(w, "  %s ← %s  (%s)\n", edge.From, edge.To, edge.Field)
	}
	return nil
}

// fill puts the objects of a snapshot into the graph.
func fill(g *graph.Graph, r io.Reader) error {
	lines, err := zstd.NewReader(r)
	if err != nil {
		return err
	}
	defer lines.Close()
	reader := bufio.NewReader(lines)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := set(g, line); err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// set puts one object into the graph, if the graph has its kind.
func set(g *graph.Graph, line []byte) error {
	var object struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &object); err != nil {
		return err
	}
	switch object.Kind {
	case "Pod":
		return decode(line, g.SetPod)
	case "PersistentVolume":
		return decode(line, g.SetPersistentVolume)
	case "VolumeAttachment":
		return decode(line, g.SetVolumeAttachment)
	case "ResourceSlice":
		return decode(line, g.SetResourceSlice)
	case "PodCertificateRequest":
		return decode(line, g.SetPodCertificateRequest)
	}
	return nil
}

type graphObject interface {
	corev1.Pod | corev1.PersistentVolume | storagev1.VolumeAttachment | resourcev1.ResourceSlice |
		certificatesv1.PodCertificateRequest
}

func decode[T graphObject](line []byte, set func(*T)) error {
	var object T
	if err := json.Unmarshal(line, &object); err != nil {
		return err
	}
	set(&object)
	return nil
}
