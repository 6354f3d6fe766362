package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

const doctorMethod = "`doctor`" + ` examines a cluster of which every node has asked for its serving certificate with a
credential of its AWS role; aws-auth maps several roles of nodes, and others. First from files:
a dump as ` + "`kubectl get -A -o json`" + ` prints it, with pods that say nothing and have to be passed
over, the roles and bindings that every cluster has, and aws-auth. The floor only splits the
same files with the same reader and decodes objects that are not pods. Then from a real kube-apiserver
that holds the same nodes, requests and mappings; there the floor only lists the same kinds
with client-go, page by page. Each is measured alternately with its floor. The
program itself is run for its time and memory, once more without the pods.`

// The targets: on files as for the other commands that read much, reading has to be the
// greater part, and what is passed over takes no memory; on a cluster, nobody waits
// twice as long as for the objects themselves.
const (
	whyDoctor = "What remains beside reading is to read each certificate request, to look for words in the text of pods, " +
		"and to put every role to the authorizers, for each of its nodes."
	whyDoctorMemory = "Pods that say nothing are passed over as they are read; what may grow is the window through which the file is read."
)

// doctor measures the examination of a large cluster.
func (b *bench) doctor() (section, error) {
	s := section{title: "Doctor", method: doctorMethod}
	l := doctorCluster{fileCluster{nodes: b.sizes.servedNodes, podsPerNode: b.sizes.podsPerNode}}
	if err := b.doctorFiles(&s, l); err != nil {
		return s, err
	}
	return s, b.doctorLive(&s, l)
}

func (b *bench) doctorFiles(s *section, l doctorCluster) error {
	b.log("doctor: writing the input, if it is not there yet")
	dump, err := l.file(b.cache)
	if err != nil {
		return err
	}
	podless, err := doctorCluster{fileCluster{nodes: l.nodes}}.file(b.cache)
	if err != nil {
		return err
	}
	mappings, err := l.mappingsFile(b.cache)
	if err != nil {
		return err
	}
	rest := []string{filepath.Join(b.root, "internal", "doctor", "testdata", "default", "kubernetes-1.37.yaml"), mappings}
	runs := table{
		caption: fmt.Sprintf("**The program on files, %s nodes.**", thousands(float64(l.nodes))),
		header:  []string{"", "file", "time", "objects a second", "processor time", "peak memory"},
	}
	with, err := b.addRun(&runs, 2*l.nodes+l.pods(), fmt.Sprintf("with %s pods", thousands(float64(l.pods()))), dump,
		doctorArgs(dump, rest))
	if err != nil {
		return err
	}
	without, err := b.addRun(&runs, 2*l.nodes, "without", podless, doctorArgs(podless, rest))
	if err != nil {
		return err
	}
	paths := append([]string{dump}, rest...)
	took, err := b.besideFloor("files", b.fillRounds, processTime,
		func() error { return examineFiles(b.ctx, paths, l.nodes) },
		func() error { return decodeFiles(b.ctx, paths) })
	if err != nil {
		return err
	}
	t := table{caption: "**Files, processor time,** garbage collection included.", header: doctorHeader}
	t.addDoctor(took)
	s.tables = append(s.tables, runs, t)
	s.targets = append(s.targets,
		atLeast("`doctor` on files, against only splitting and decoding", 0.6, took.ratio(), whyDoctor),
		atMost("Peak memory of `doctor` on files with the pods, to that without", 1.25, with/without, times, whyDoctorMemory))
	return nil
}

func doctorArgs(dump string, rest []string) []string {
	args := []string{"doctor", "-o", "json", "--from", dump}
	for _, path := range rest {
		args = append(args, "--from", path)
	}
	return args
}

// doctorTimes is the time of the doctor and of its floor, in nanoseconds, round by round.
type doctorTimes struct{ doctor, floor []float64 }

// ratio is how much of the floor's pace the doctor has.
func (d doctorTimes) ratio() spread {
	var ratios []float64
	for i := range d.doctor {
		ratios = append(ratios, d.floor[i]/d.doctor[i])
	}
	return spreadOf(ratios)
}

// besideFloor measures both alternately. A first round, which is not counted, warms them
// up.
func (b *bench) besideFloor(what string, rounds int, clock func() time.Duration, examine, floor func() error) (doctorTimes, error) {
	var r doctorTimes
	sides := []struct {
		into *[]float64
		run  func() error
	}{{&r.doctor, examine}, {&r.floor, floor}}
	for i := range rounds + 1 {
		b.log("doctor: %s, round %d of %d", what, i, rounds)
		for j := range sides {
			side := sides[(i+j)%len(sides)]
			settle()
			begin := clock()
			if err := side.run(); err != nil {
				return r, err
			}
			if i > 0 {
				*side.into = append(*side.into, float64((clock() - begin).Nanoseconds()))
			}
		}
	}
	return r, b.ctx.Err()
}

var doctorHeader = []string{"`doctor`", "floor", "ratio"}

func (t *table) addDoctor(r doctorTimes) {
	t.add(nanoseconds(median(r.doctor)), nanoseconds(median(r.floor)), r.ratio().String())
}

// examineFiles does the work of the command, except for writing its report.
func examineFiles(ctx context.Context, paths []string, nodes int) error {
	c, err := doctor.Read(ctx, paths, doctor.ReadOptions{})
	if err != nil {
		return err
	}
	return examined(c, nodes)
}

// examined examines a cluster, and checks that all of it was there and that its nodes
// are well.
func examined(c *doctor.Cluster, nodes int) error {
	if len(c.Nodes) != nodes || len(c.Requests) != nodes || c.AWSAuth == nil || !c.RBACKnown {
		return fmt.Errorf("%d nodes and %d requests of %d were read, aws-auth: %t, RBAC: %t", len(c.Nodes), len(c.Requests), nodes,
			c.AWSAuth != nil, c.RBACKnown)
	}
	report := doctor.Examine(c, doctor.Options{Now: time.Now()})
	for _, role := range report.Roles {
		if role.Purpose == doctor.ForNodes && (!role.Works() || !role.Seen) {
			return fmt.Errorf("a node of %s is not well: %+v", role.ARN, role)
		}
	}
	if len(report.Roles) < nodeRoles {
		return errors.New("roles of nodes are missing in the report")
	}
	return nil
}

// decodeFiles reads the same objects with the same reader, and forgets them.
func decodeFiles(ctx context.Context, paths []string) error {
	known := func(_, kind string, _ []byte) bool { return doctorObject(kind) != nil }
	_, err := manifest.Read(ctx, paths, manifest.Options{Wanted: known}, func(d *manifest.Document) error {
		return d.Decode(doctorObject(d.Kind))
	})
	return err
}

// doctorObject is an empty object of a kind that the doctor reads here; nil for others.
func doctorObject(kind string) runtime.Object {
	switch kind {
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "Node":
		return &corev1.Node{}
	case "CertificateSigningRequest":
		return &certificatesv1.CertificateSigningRequest{}
	case "ClusterRole":
		return &rbacv1.ClusterRole{}
	case "ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	case "Role":
		return &rbacv1.Role{}
	case "RoleBinding":
		return &rbacv1.RoleBinding{}
	}
	return nil
}
