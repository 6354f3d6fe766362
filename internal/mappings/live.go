package mappings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Kind is a kind of source.
type Kind string

// The kinds.
const (
	File            Kind = "File"
	ConfigMap       Kind = "ConfigMap"
	IdentityMapping Kind = "IdentityMapping"
)

// Options say what is followed.
type Options struct {
	// Sources are asked in this order, each once.
	Sources []Kind
	// File is the path of the source File.
	File string
	// Namespace and Name are those of the ConfigMap.
	Namespace, Name string
	// Cluster is where the ConfigMap and the custom resource are; nil if neither
	// is a source.
	Cluster *rest.Config
	// Rules are how mappings are used.
	Rules iam.Rules
	// Observer may be nil.
	Observer Observer
	// MaxStaleness is how long a source may not have been read or heard from while
	// what was read of it is in use; 0 for no limit.
	MaxStaleness time.Duration
	// Interval is how often the file is looked at; 0 for two seconds.
	Interval time.Duration
	// Now may be nil.
	Now func() time.Time
}

// Observer is notified of changes of sources, one call at a time for each source.
type Observer interface {
	// MappingsChanged reports that a source was read and has other mappings or
	// findings than before.
	MappingsChanged(Change)
	// MappingsUnreachable reports that a source cannot be read or followed, once
	// until it can be again, which is reported with nil.
	MappingsUnreachable(source string, err error)
	// EventFailed reports that an Event could not be created.
	EventFailed(err error)
}

// Change is what is new in a source.
type Change struct {
	Source Source
	// Found are the findings that were not there before, Mended those that are
	// no more.
	Found, Mended []finding.Finding
}

// Source is the state of a source.
type Source struct {
	// Name is that of the mappings: "ConfigMap kube-system/aws-auth".
	Name string
	Kind Kind
	// Read is whether the source was ever read.
	Read bool
	// Mappings is how many are in use.
	Mappings map[iam.MappingKind]int
	// Findings are in order, the gravest first.
	Findings []finding.Finding
	// Stale are the keys whose last good state is in use instead of what they
	// hold, and Unknown those that have not had a good one yet.
	Stale, Unknown []string
	// Err is why the source cannot be read or followed now.
	Err error
	// Age is how long ago the source was last heard from; TooOld is set when that is
	// so long that nobody is mapped by it.
	Age    time.Duration
	TooOld error
}

// Healthy reports whether what is in use is what is there.
func (s *Source) Healthy() bool {
	return s.Read && s.Err == nil && s.TooOld == nil && len(s.Stale) == 0 && len(s.Unknown) == 0
}

// Live are mappings that are followed. It is safe for concurrent use.
type Live struct {
	opts    Options
	sources []*source
	events  *events
}

// New returns mappings that follow nothing until they run.
func New(opts Options) (*Live, error) {
	if opts.Interval == 0 {
		opts.Interval = fileInterval
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Observer == nil {
		opts.Observer = unobserved{}
	}
	l := &Live{opts: opts}
	for _, kind := range opts.Sources {
		s := &source{kind: kind, rules: opts.Rules, observer: opts.Observer}
		var err error
		switch kind {
		case File:
			s.name, s.follow = "file "+opts.File, l.followFile
		case ConfigMap:
			err = l.openConfigMap(s)
		case IdentityMapping:
			err = l.openIdentityMappings(s)
		default:
			err = fmt.Errorf("there is no source %q of mappings", kind)
		}
		if err != nil {
			return nil, err
		}
		s.age = staleness.New(s.name, opts.MaxStaleness, opts.Now)
		nothing, _ := iam.Collect(nil)
		s.state.Store(&state{mappings: nothing})
		l.sources = append(l.sources, s)
	}
	return l, nil
}

func (l *Live) openConfigMap(s *source) error {
	client, err := kubernetes.NewForConfig(l.opts.Cluster)
	if err != nil {
		return fmt.Errorf("connect to cluster %s: %w", l.opts.Cluster.Host, err)
	}
	s.name = "ConfigMap " + l.opts.Namespace + "/" + l.opts.Name
	l.events = newEvents(client, l.opts)
	s.follow = func(ctx context.Context, s *source) { l.followConfigMap(ctx, s, client) }
	return nil
}

func (l *Live) openIdentityMappings(s *source) error {
	client, err := dynamic.NewForConfig(l.opts.Cluster)
	if err != nil {
		return fmt.Errorf("connect to cluster %s: %w", l.opts.Cluster.Host, err)
	}
	s.name = "IAMIdentityMappings"
	s.follow = func(ctx context.Context, s *source) { l.followIdentityMappings(ctx, s, client) }
	return nil
}

// Run follows the sources until the context ends. It is called once.
func (l *Live) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	if l.events != nil {
		following.Go(func() { l.events.write(ctx) })
	}
	for _, s := range l.sources {
		following.Go(func() { s.follow(ctx, s) })
	}
}

// Find implements iam.Mapper. The error means that a source that may know the
// caller has not been read well yet, or was not heard from for too long.
func (l *Live) Find(canonical, account string) (iam.Mapping, bool, error) {
	if err := l.notRead(); err != nil {
		return iam.Mapping{}, false, err
	}
	for _, s := range l.sources {
		if err := s.age.Check(); err != nil {
			return iam.Mapping{}, false, fmt.Errorf("not decided: %w", err)
		}
		now := s.state.Load()
		mapping, found := now.mappings.Find(canonical, account, l.opts.Rules.RolePaths)
		if key := now.hides(canonical, mapping, found); key != "" {
			return iam.Mapping{}, false, fmt.Errorf("%s: %s has not been readable since the server started: mend it", s.name, key)
		}
		if found {
			return mapping, true, nil
		}
	}
	return iam.Mapping{}, false, nil
}

// TooOld returns which sources were not heard from for too long: nobody is mapped by
// them.
func (l *Live) TooOld() error {
	var old []error
	for _, s := range l.sources {
		old = append(old, s.age.Check())
	}
	return errors.Join(old...)
}

// Ages returns those of the sources, in their order.
func (l *Live) Ages() []staleness.Aged {
	all := make([]staleness.Aged, len(l.sources))
	for i, s := range l.sources {
		all[i] = s.age
	}
	return all
}

// Synced returns nil when every source, and every key of it, has been read well
// once.
func (l *Live) Synced() error {
	if err := l.notRead(); err != nil {
		return err
	}
	var missing []error
	for _, s := range l.sources {
		for _, key := range s.state.Load().unknown {
			missing = append(missing, fmt.Errorf("%s: %s has not been readable since the server started: mend it", s.name, key))
		}
	}
	return errors.Join(missing...)
}

func (l *Live) notRead() error {
	for _, s := range l.sources {
		switch now := s.state.Load(); {
		case now.read:
		case now.err != nil:
			return fmt.Errorf("%s has not been read yet: %w", s.name, now.err)
		default:
			return fmt.Errorf("%s has not been read yet", s.name)
		}
	}
	return nil
}

// Sources returns the state of each source, in their order. It is shared and not
// to be changed.
func (l *Live) Sources() []Source {
	all := make([]Source, len(l.sources))
	for i, s := range l.sources {
		all[i] = s.describe(s.state.Load())
	}
	return all
}

// Findings returns those of all sources, in order.
func (l *Live) Findings() []finding.Finding {
	var all []finding.Finding
	for _, s := range l.sources {
		all = append(all, s.state.Load().findings...)
	}
	finding.Sort(all)
	return all
}

func (s *source) describe(now *state) Source {
	age, _ := s.age.Value()
	return Source{
		Age: age, TooOld: s.age.Check(),
		Name: s.name, Kind: s.kind, Read: now.read, Findings: now.findings,
		Mappings: maps.Clone(now.counts()), Stale: slices.Clone(now.stale), Unknown: slices.Clone(now.unknown), Err: now.err,
	}
}

// unobserved is the Observer of those who want to know nothing.
type unobserved struct{}

func (unobserved) MappingsChanged(Change)            {}
func (unobserved) MappingsUnreachable(string, error) {}
func (unobserved) EventFailed(error)                 {}
