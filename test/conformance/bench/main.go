// Command bench measures node-authorizer side by side with the Node authorizer
// of Kubernetes, in one process, alternately, and writes the results to a
// Markdown file. Ratios count: absolute figures depend on the
// machine.
//
//	go run ./bench                          everything, to standard output
//	go run ./bench -out benchmarks.md       and to a file
//	go run ./bench -section requests,worst  some sections only
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is the settings of a run.
type bench struct {
	ctx    context.Context
	sizes  sizes
	status io.Writer

	rounds     int           // in which the sides alternate
	fillRounds int           // the same, where one round takes long
	fileRounds int           // the same, for runs of the program
	atLeast    time.Duration // that one measurement takes
	listenFor  time.Duration // that single requests are timed
	serveFor   time.Duration // that servers are asked in one round
	renewals   int           // of a lease in one round

	binary string // the program
	root   string // folder of the repository
	cache  string // folder for the input files
}

// sizes are the sizes of the clusters.
type sizes struct {
	nodes, namespaces, pods      int
	relatedNodes, unrelatedNodes int
	worst                        []int
	worstTarget                  int // the one of worst that the target is about
	questions                    int // of each kind
	changes                      int // pods that change
	fileNodes, podsPerNode       int
	documents                    int // that review gets
	servedNodes                  int
	machines                     int   // that join in one round
	tokens                       int   // that are there when they do
	auditBytes                   int   // of the audit log that is made while it is read
	instances                    int   // whose tokens are asked about
	freshTokens                  int   // that are asked about once in one round
	pathNodes                    []int // of the clusters of attack paths
	pathNodesTarget              int   // the one of pathNodes that the targets are about
}

func fullSize() sizes {
	return sizes{
		nodes: 500, namespaces: 200, pods: 100_000,
		relatedNodes: 5_000, unrelatedNodes: 64,
		worst: []int{10, 100, 1_000, 10_000, 100_000}, worstTarget: 10_000,
		questions: 4096, changes: 20_000,
		fileNodes: 15_000, podsPerNode: 30, documents: 200_000,
		servedNodes: 5_000,
		machines:    1_000, tokens: 20_000,
		auditBytes: 2 << 30,
		instances:  2_000, freshTokens: 4_000,
		pathNodes: []int{500, 5_000, 20_000}, pathNodesTarget: 5_000,
	}
}

func (s sizes) own() layout {
	return layout{nodes: s.nodes, namespaces: s.namespaces, pods: s.pods, volumes: true}
}

func (s sizes) shared() layout {
	l := s.own()
	l.shared = true
	return l
}

// part is a section that can be run alone.
type part struct {
	name string
	run  func(*bench) (section, error)
}

var parts = []part{
	{"requests", (*bench).reads},
	{"populate", (*bench).populate},
	{"worst", (*bench).worst},
	{"concurrent", (*bench).concurrent},
	{"files", (*bench).files},
	{"snapshots", (*bench).snapshots},
	{"reviews", (*bench).reviews},
	{"serving", (*bench).serving},
	{"onenode", (*bench).oneNode},
	{"containment", (*bench).containment},
	{"leases", (*bench).leases},
	{"documents", (*bench).documents},
	{"joins", (*bench).joins},
	{"audit", (*bench).audit},
	{"authentications", (*bench).authentications},
	{"doctor", (*bench).doctor},
	{"paths", (*bench).paths},
	{"diff", (*bench).pathsDiff},
}

func run(ctx context.Context, args []string, out, status io.Writer) error {
	b := &bench{
		ctx: ctx, sizes: fullSize(), root: "../..", status: status, atLeast: 20 * time.Millisecond,
		listenFor: 2 * time.Second, serveFor: 3 * time.Second, renewals: 1000,
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(status)
	file := flags.String("out", "", "Markdown `file` to write; needs all sections")
	only := flags.String("section", "", "comma-separated `sections` to run: "+strings.Join(partNames(), ", ")+" (default: all)")
	flags.IntVar(&b.rounds, "rounds", 7, "number of `rounds` in which both sides are measured")
	flags.IntVar(&b.fillRounds, "fill-rounds", 3, "number of `rounds` in which large graphs are filled")
	flags.IntVar(&b.fileRounds, "file-rounds", 2, "number of `runs` of the program for each figure about files")
	flags.StringVar(&b.cache, "cache", "", "`folder` of the input files (default: in the user's cache folder)")
	flags.StringVar(&b.binary, "binary", "../../bin/node-authorizer", "the node-authorizer `program` that reads files")
	floor := flags.String("floor", "", "only be the server that others are measured against, with a config `file`")
	profile := flags.String("cpuprofile", "", "write a profile of this process to a `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *floor != "" {
		return serveFloor(ctx, *floor)
	}
	if b.cache == "" {
		folder, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("choosing a folder for input files: %w; give one with -cache", err)
		}
		b.cache = filepath.Join(folder, "node-authorizer", "bench")
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if *file != "" && len(chosen) < len(parts) {
		return errors.New("-out needs all sections: leave -section out")
	}
	if *profile == "" {
		return b.measure(chosen, *file, out)
	}
	to, err := os.Create(*profile)
	if err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(to); err != nil {
		return fmt.Errorf("starting a profile: %w", err)
	}
	err = b.measure(chosen, *file, out)
	pprof.StopCPUProfile()
	return errors.Join(err, to.Close())
}

// measure runs parts, prints each when it is done, and writes them to a file.
func (b *bench) measure(chosen []part, file string, out io.Writer) error {
	silenceKubernetes()
	var sections []section
	for _, p := range chosen {
		s, err := p.run(b)
		if err != nil {
			return fmt.Errorf("section %s: %w", p.name, err)
		}
		sections = append(sections, s)
		if err := s.write(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if file == "" {
		return nil
	}
	return writeDocument(file, sections)
}

func (b *bench) log(format string, args ...any) {
	fmt.Fprintf(b.status, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	var chosen []part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.Index(partNames(), name)
		if i < 0 {
			return nil, fmt.Errorf("unknown section %q: the sections are %s", name, strings.Join(partNames(), ", "))
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// silenceKubernetes drops the log of the in-tree side. A logger that drops would
// cost it more than klog does, which decides by its verbosity.
func silenceKubernetes() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}
