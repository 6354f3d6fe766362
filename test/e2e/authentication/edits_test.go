package authentication

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// perSecond is the number of requests a second while the mappings are edited.
const perSecond = 100

// TestMappingsEditedUnderLoad edits aws-auth under 100 authentications a second, of a
// node's role that is mapped unless an edit removes it, and of a role that is never
// mapped. No answer names a wrong user, and the node is refused only after an edit that
// removes its role.
func TestMappingsEditedUnderLoad(t *testing.T) {
	ctx := t.Context()
	good := mapRoles()
	if err := blue.Map(ctx, map[string]string{"mapRoles": good}); err != nil {
		t.Fatal(err)
	}
	instance, _ := blue.Launch(rightNode)
	other, _ := blue.Launch("bystander")
	// Each request has a new token, because kube-apiserver caches answers for ten seconds.
	whoIs := func(ctx context.Context, instance fakeaws.Instance) (authenticationv1.UserInfo, error) {
		token, err := blue.MakeToken(ctx, instance)
		if err != nil {
			return authenticationv1.UserInfo{}, err
		}
		return blue.WhoAmI(ctx, token)
	}
	name := "system:node:" + instance.PrivateDNSName
	known := func(ctx context.Context) error {
		info, err := whoIs(ctx, instance)
		if err == nil && info.Username != name {
			err = fmt.Errorf("it is %s", info.Username)
		}
		return err
	}
	eventually(t, "the node is known", known)

	// While it is true, a refusal of the node is a fault.
	var mapped atomic.Bool
	mapped.Store(true)
	load := startLoad(t, func(n int) error {
		if n%4 == 0 {
			if info, err := whoIs(ctx, other); err == nil {
				return fmt.Errorf("an unknown caller is %s", info.Username)
			}
			return nil
		}
		before := mapped.Load()
		info, err := whoIs(ctx, instance)
		switch {
		case err == nil && info.Username != name:
			return fmt.Errorf("the node is %s", info.Username)
		case err != nil && before && mapped.Load():
			return fmt.Errorf("the node is refused: %w", err)
		case err != nil && !apierrors.IsUnauthorized(err):
			return fmt.Errorf("the API server does not answer: %w", err)
		}
		return nil
	})
	edit := func(what string, data map[string]string) {
		t.Helper()
		load.during(t, what, func() {
			if err := blue.Map(ctx, data); err != nil {
				t.Fatal(err)
			}
		})
	}
	edit("another role is added",
		map[string]string{"mapRoles": good + "- rolearn: " + RoleARN("more") + "\n  username: more\n  groups: []\n"})
	edit("an entry is invalid", map[string]string{"mapRoles": "- rolearn: not-an-arn\n  username: nobody\n" + good})
	edit("the YAML is broken", map[string]string{"mapRoles": good + "- rolearn: [\n"})
	edit("the YAML of another key is broken", map[string]string{"mapRoles": good, "mapUsers": "\t- x"})
	edit("the order is another", map[string]string{"mapRoles": "- rolearn: " + RoleARN("more") + "\n  username: more\n" + good})
	t.Run("mistakes are reported as events of the ConfigMap", func(t *testing.T) {
		for _, code := range []finding.Code{iam.MappingInvalid, iam.MappingSyntax} {
			eventually(t, "there is an event "+string(code), func(ctx context.Context) error {
				events, err := blue.Client.CoreV1().Events(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
					FieldSelector: "involvedObject.kind=ConfigMap,involvedObject.name=aws-auth,reason=" + string(code),
				})
				if err == nil && len(events.Items) == 0 {
					err = errors.New("there is none")
				}
				return err
			})
		}
	})
	gone := func(ctx context.Context) error {
		if info, err := whoIs(ctx, instance); err == nil {
			return fmt.Errorf("it is %s", info.Username)
		}
		return nil
	}
	t.Run("deleted mappings are not used", func(t *testing.T) {
		mapped.Store(false)
		if err := blue.Unmap(ctx); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the node is unknown", gone)
	})
	t.Run("restored mappings are used", func(t *testing.T) {
		if err := blue.Map(ctx, map[string]string{"mapRoles": good}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the node is known", known)
		mapped.Store(true)
	})
	t.Run("a removed entry is not used", func(t *testing.T) {
		mapped.Store(false)
		if err := blue.Map(ctx,
			map[string]string{"mapRoles": strings.ReplaceAll(good, RoleARN(rightNode), RoleARN("another"))}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the node is unknown", gone)
		if err := blue.Map(ctx, map[string]string{"mapRoles": good}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the node is known", known)
		mapped.Store(true)
	})
	load.end(t)
}

// inFlight is how many requests may be in flight. On a machine that is too slow for the
// rate, fewer requests are sent, and no backlog grows.
const inFlight = 50

// requestLoad sends requests at a steady rate.
type requestLoad struct {
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	asked   atomic.Int64
	mu      sync.Mutex
	faults  []error
	started time.Time
}

func startLoad(t *testing.T, ask func(n int) error) *requestLoad {
	ctx, cancel := context.WithCancel(t.Context())
	l := &requestLoad{cancel: cancel, started: time.Now()}
	l.ended.Go(func() {
		ticker := time.NewTicker(time.Second / perSecond)
		defer ticker.Stop()
		slots := make(chan struct{}, inFlight)
		for n := 0; ; n++ {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			slots <- struct{}{}
			l.ended.Go(func() {
				defer func() { <-slots }()
				if err := ask(n); err != nil {
					l.mu.Lock()
					l.faults = append(l.faults, err)
					l.mu.Unlock()
				}
				l.asked.Add(1)
			})
		}
	})
	t.Cleanup(cancel)
	return l
}

// during makes a change and waits until the requests of one more second are answered.
func (l *requestLoad) during(t *testing.T, what string, change func()) {
	t.Helper()
	t.Run(what, func(t *testing.T) {
		l.mu.Lock()
		before := len(l.faults)
		l.mu.Unlock()
		change()
		target := l.asked.Load() + perSecond
		eventually(t, "a hundred more requests are answered", func(context.Context) error {
			if asked := l.asked.Load(); asked < target {
				return fmt.Errorf("%d are missing", target-asked)
			}
			return nil
		})
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, fault := range l.faults[before:] {
			t.Error(fault)
		}
	})
}

func (l *requestLoad) end(t *testing.T) {
	t.Helper()
	l.cancel()
	l.ended.Wait()
	for _, fault := range l.faults {
		t.Error(fault)
	}
	asked, took := l.asked.Load(), time.Since(l.started)
	t.Logf("%d requests in %s, %.0f a second, %d faults", asked, took.Round(time.Millisecond), float64(asked)/took.Seconds(), len(l.faults))
}
