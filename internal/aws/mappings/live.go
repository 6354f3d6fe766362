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

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/objectevents"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Options are the settings of [Live].
type Options struct {
	// Sources are tried in this order, each once.
	Sources []v1alpha1.MappingSource
	// File is the path of the source File.
	File string
	// Namespace and Name identify the ConfigMap.
	Namespace, Name string
	// Cluster is the API server with the ConfigMap and the custom resource. It is nil if
	// neither is a source.
	Cluster *rest.Config
	// Rules are how mappings are applied.
	Rules iam.Rules
	// Observer is optional.
	Observer Observer
	// MaxStaleness is the maximum age of a source whose mappings are used; 0 means no limit.
	MaxStaleness time.Duration
	// Interval is the interval between checks of the file; 0 means two seconds.
	Interval time.Duration
	// Now is optional.
	Now func() time.Time
}

// Observer is notified of changes of sources. Calls for the same source are sequential.
type Observer interface {
	// MappingsChanged reports that a source was read and has new mappings or findings.
	MappingsChanged(Change)
	// MappingsUnreachable reports once that a source cannot be read or followed, and with
	// nil that it can be again.
	MappingsUnreachable(source string, err error)
	// EventFailed reports that an Event could not be created.
	EventFailed(err error)
}

// Change is a change of a source.
type Change struct {
	Source Source
	// Found are the new findings, Fixed the findings that are gone.
	Found, Fixed []finding.Finding
}

// Source is the state of a source.
type Source struct {
	// Name is the name of the mappings: "ConfigMap kube-system/aws-auth".
	Name string
	Kind v1alpha1.MappingSource
	// Read is whether the source has ever been read.
	Read bool
	// Mappings are the numbers of mappings in use.
	Mappings map[iam.MappingKind]int
	// Findings are sorted, the most severe first.
	Findings []finding.Finding
	// Stale are the broken keys whose last valid content is in use. Unknown are the
	// broken keys without valid content so far.
	Stale, Unknown []string
	// Err is why the source cannot be read or followed now.
	Err error
	// Age is the time since the source was last known to be current. TooOld is set when
	// it exceeds the limit, so that look-ups are errors.
	Age    time.Duration
	TooOld error
}

// Healthy reports whether the mappings in use are current.
func (s *Source) Healthy() bool {
	return s.Read && s.Err == nil && s.TooOld == nil && len(s.Stale) == 0 && len(s.Unknown) == 0
}

// Live has mappings that follow their sources. It is safe for concurrent use.
type Live struct {
	opts    Options
	sources []*source
	events  *objectevents.Recorder
}

// New returns a Live that follows its sources when Run is called.
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
		case v1alpha1.FileSource:
			s.name, s.follow = "file "+opts.File, l.followFile
		case v1alpha1.ConfigMapSource:
			err = l.openConfigMap(s)
		case v1alpha1.IdentityMappingSource:
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
	l.events = objectevents.New(client, l.opts.Now, l.opts.Observer.EventFailed)
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
		following.Go(func() { l.events.Run(ctx) })
	}
	for _, s := range l.sources {
		following.Go(func() { s.follow(ctx, s) })
	}
}

// Find implements iam.Mapper. The error means that a source that may have the caller has
// no valid content yet, or is too old.
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
			return iam.Mapping{}, false, fmt.Errorf("%s: %s has not been readable since the server started: fix it", s.name, key)
		}
		if found {
			return mapping, true, nil
		}
	}
	return iam.Mapping{}, false, nil
}

// TooOld returns an error if sources are too old.
func (l *Live) TooOld() error {
	var old []error
	for _, s := range l.sources {
		old = append(old, s.age.Check())
	}
	return errors.Join(old...)
}

// Ages returns the ages of the sources, in their order.
func (l *Live) Ages() []staleness.Aged {
	all := make([]staleness.Aged, len(l.sources))
	for i, s := range l.sources {
		all[i] = s.age
	}
	return all
}

// Synced returns nil when every key of every source has had valid content.
func (l *Live) Synced() error {
	if err := l.notRead(); err != nil {
		return err
	}
	var missing []error
	for _, s := range l.sources {
		for _, key := range s.state.Load().unknown {
			missing = append(missing, fmt.Errorf("%s: %s has not been readable since the server started: fix it", s.name, key))
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

// Sources returns the state of each source, in their order. The result is shared and must not be changed.
func (l *Live) Sources() []Source {
	all := make([]Source, len(l.sources))
	for i, s := range l.sources {
		all[i] = s.describe(s.state.Load())
	}
	return all
}

// Findings returns the findings of all sources, sorted.
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

// unobserved is the default Observer.
type unobserved struct{}

func (unobserved) MappingsChanged(Change)            {}
func (unobserved) MappingsUnreachable(string, error) {}
func (unobserved) EventFailed(error)                 {}
