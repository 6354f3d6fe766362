package setup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// Check is a question to the running cluster.
type Check struct {
	// ID names the check.
	ID string `json:"id"`
	// Question is put so that yes is right.
	Question string `json:"question"`
	// Answer is holds, doesNotHold or undetermined.
	Answer probe.Outcome `json:"answer"`
	// Why is the reason in one line.
	Why string `json:"why"`
}

const (
	// reviews is the number of access reviews whose time is measured.
	reviews = 20
	// slowest is the longest time that an access review may take, which is the time that kube-apiserver waits while it observes.
	slowest = time.Second
)

// Verify asks the running cluster whether the server works as its mode says.
func (n *Node) Verify(ctx context.Context, p *Plan) ([]Check, error) {
	served, err := n.Cluster.core.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server %s for its version: %w", n.Cluster.Config.Host, err)
	}
	minor, _ := kubeversion.Parse(source.BehavesAs(served)) // 0 for a version that is not known
	checks := []Check{check("server", "Does the server answer kube-apiserver?", p.serverReady(ctx), "it is ready on "+p.webhook())}
	changes, err := Diff("", p.Files)
	if err == nil && changes != "" {
		err = errors.New("setup kubeadm --dry-run shows what has changed, or which certificate is due: run setup kubeadm")
	}
	checks = append(checks, check("files", "Are the files of this node as setup writes them today?", err, "no file differs"))
	members, err := n.Cluster.Members(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		checks = append(checks, check("node/"+name, "Are kube-apiserver and the server of "+name+" ready?",
			n.Cluster.healthy(ctx, name, members[name]), "mode "+string(members[name].Mode)))
	}
	probes, err := probe.Run(ctx, n.Cluster.Config, probe.Options{Minor: minor})
	if err != nil {
		return nil, err
	}
	for i := range probes.Probes {
		asked := &probes.Probes[i]
		checks = append(checks, Check{"probe/" + string(asked.ID), asked.Question, asked.Outcome, asked.Why})
	}
	if p.Mode == Observe {
		checks = append(checks, p.agreement(ctx)...)
	}
	return append(checks, n.latency(ctx)), nil
}

func check(id, question string, err error, otherwise string) Check {
	if err != nil {
		return Check{id, question, probe.DoesNotHold, err.Error()}
	}
	return Check{id, question, probe.Holds, otherwise}
}

// latency measures access reviews about this node, which kube-apiserver sends to the server.
func (n *Node) latency(ctx context.Context) Check {
	c := Check{ID: "latency", Question: "Are decisions about nodes fast?", Answer: probe.Undetermined}
	var took []time.Duration
	for range reviews {
		begin := time.Now()
		if err := n.Cluster.asksAbout(ctx, n.Name); err != nil {
			c.Why = err.Error()
			return c
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	c.Answer, c.Why = probe.Holds, fmt.Sprintf("%d access reviews took %s in the median and at most %s", reviews,
		took[reviews/2].Round(time.Millisecond/10), took[reviews-1].Round(time.Millisecond/10))
	if took[reviews-1] > slowest {
		c.Answer = probe.DoesNotHold
	}
	return c
}

// agreement compares the server with the in-tree parts, by the metrics of the server on this node.
func (p *Plan) agreement(ctx context.Context) []Check {
	text, err := p.metrics(ctx)
	var families map[string]*dto.MetricFamily
	if err == nil {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err = parser.TextToMetricFamilies(bytes.NewReader(text))
	}
	var checks []Check
	for _, kind := range []struct{ label, noun string }{{"authorize", "requests"}, {"admit", "writes"}} {
		c := Check{ID: "agreement/" + kind.label, Question: "Does the server decide about " + kind.noun + " as the in-tree parts do?"}
		compared := counts(families["node_authorizer_observed_requests_total"], kind.label, "type")[kind.label]
		differences := counts(families["node_authorizer_observed_differences_total"], kind.label, "difference")
		different, undecided := 0., 0.
		var names []string
		for _, name := range slices.Sorted(maps.Keys(differences)) {
			count := differences[name]
			if name == "undecided" {
				undecided += count
			} else {
				different += count
			}
			names = append(names, fmt.Sprintf("%.0f %s", count, name))
		}
		c.Answer = probe.Holds
		c.Why = fmt.Sprintf("%.0f compared since the server started, %s", compared,
			cmp.Or(strings.Join(names, ", "), "no difference"))
		switch {
		case err != nil:
			c.Answer, c.Why = probe.Undetermined, err.Error()
		case different > 0:
			c.Answer = probe.DoesNotHold
		case undecided > 0:
			c.Answer = probe.Undetermined
			c.Why += `: the server's log says why ("request could not be decided"); a restart of the server begins a new count`
		case compared == 0:
			c.Answer = probe.Undetermined
		}
		checks = append(checks, c)
	}
	return checks
}

func (p *Plan) metrics(ctx context.Context) ([]byte, error) {
	text, err := get(ctx, http.DefaultClient, "http://"+p.Metrics()+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("read the server's metrics: %w", err)
	}
	return text, nil
}

// counts returns the values of a counter by a label, for requests of a type.
func counts(family *dto.MetricFamily, kind, by string) map[string]float64 {
	counts := map[string]float64{}
	for _, m := range family.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["type"] == kind {
			counts[labels[by]] += m.GetCounter().GetValue()
		}
	}
	return counts
}
