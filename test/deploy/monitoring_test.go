package deploy

import (
	"encoding/json"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/node-authorizer/node-authorizer/docs/reference"
)

// expression is a PromQL expression and its place.
type expression struct{ where, text string }

func parsedRules(content string) (*rulefmt.RuleGroups, []error) {
	return rulefmt.Parse([]byte(content), false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
}

func ruleGroups(t *testing.T) []rulefmt.RuleGroup {
	t.Helper()
	groups, errs := parsedRules(read(t, chartFolder, "files/rules.yaml"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return groups.Groups
}

func ruleExpressions(t *testing.T) (all []expression, recorded []string) {
	t.Helper()
	for _, group := range ruleGroups(t) {
		for _, rule := range group.Rules {
			all = append(all, expression{"rule " + rule.Record + rule.Alert, rule.Expr})
			if rule.Record != "" {
				recorded = append(recorded, rule.Record)
			}
		}
	}
	return all, recorded
}

// panel has the fields of a dashboard's panel that the test needs.
type panel struct {
	ID          int
	Title       string
	Type        string
	Description string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ Expr, RefID string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct {
		UID    string
		Title  string
		Panels []panel
	}
	if err := json.Unmarshal([]byte(read(t, chartFolder, "files/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" || len(dashboard.Panels) == 0 {
		t.Fatal("the dashboard has no uid, title or panels")
	}
	return dashboard.Panels
}

// grafana fills in the variables of a dashboard.
var grafana = strings.NewReplacer("$__rate_interval", "5m", "$job", ".*")

// pageExpressions returns the queries in the pages for operators.
func pageExpressions(t *testing.T) (all []expression) {
	t.Helper()
	for _, b := range blocks(t) {
		if b.language == "promql" {
			all = append(all, expression{"page " + b.page, b.text})
		}
	}
	return all
}

func dashboardExpressions(t *testing.T) (all []expression) {
	t.Helper()
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			all = append(all, expression{"panel " + p.Title, grafana.Replace(target.Expr)})
		}
	}
	return all
}

// selectors returns the time series that an expression reads.
func selectors(t *testing.T, e expression) (all []*parser.VectorSelector) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(e.text)
	if err != nil {
		t.Errorf("%s: %v\n%s", e.where, err, e.text)
		return nil
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			all = append(all, selector)
		}
		return nil
	})
	return all
}

// familyOf returns the metric of a time series. A histogram has three.
func familyOf(series string, known map[string]family) (family, bool) {
	if f, ok := known[series]; ok {
		return f, f.kind != "histogram"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(series, suffix); ok {
			if f, known := known[base]; known && f.kind == "histogram" {
				return f, true
			}
		}
	}
	return family{}, false
}

func TestRulesAndDashboardReadMetricsThatExist(t *testing.T) {
	known := served(t)
	maps.Copy(known, ofAPIServers(t))
	rules, recorded := ruleExpressions(t)
	for _, e := range slices.Concat(rules, dashboardExpressions(t), pageExpressions(t)) {
		read := selectors(t, e)
		if len(read) == 0 {
			t.Errorf("%s reads no metric", e.where)
		}
		for _, s := range read {
			f, ok := familyOf(s.Name, known)
			if slices.Contains(recorded, s.Name) {
				continue
			}
			if !ok {
				t.Errorf("%s: there is no metric %s", e.where, s.Name)
				continue
			}
			for _, m := range s.LabelMatchers {
				if m.Name != model.MetricNameLabel && m.Name != "job" && !slices.Contains(f.labels, m.Name) {
					t.Errorf("%s: %s has no label %s", e.where, s.Name, m.Name)
				}
			}
		}
	}
}

// Labels in group by must be labels of the metric, or of Prometheus.
func TestRulesAndDashboardGroupByLabelsThatExist(t *testing.T) {
	known := served(t)
	maps.Copy(known, ofAPIServers(t))
	rules, recorded := ruleExpressions(t)
	for _, e := range slices.Concat(rules, dashboardExpressions(t), pageExpressions(t)) {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(e.text)
		if err != nil {
			t.Fatal(err)
		}
		parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
			aggregate, ok := node.(*parser.AggregateExpr)
			if !ok || aggregate.Without {
				return nil
			}
			for _, s := range selectors(t, expression{e.where, aggregate.Expr.String()}) {
				f, _ := familyOf(s.Name, known)
				for _, label := range aggregate.Grouping {
					if !slices.Contains(recorded, s.Name) && !slices.Contains([]string{"job", "instance", "le"}, label) &&
						!slices.Contains(f.labels, label) {
						t.Errorf("%s: %s has no label %s to group by", e.where, s.Name, label)
					}
				}
			}
			return nil
		})
	}
}

func TestEveryMetricIsUsed(t *testing.T) {
	rules, _ := ruleExpressions(t)
	text := ""
	for _, e := range slices.Concat(rules, dashboardExpressions(t)) {
		text += e.text + "\n"
	}
	for name := range served(t) {
		if strings.HasPrefix(name, "node_authorizer_") && !strings.Contains(text, name) {
			t.Errorf("neither a rule nor the dashboard reads %s", name)
		}
	}
}

func TestAlertsSayWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	for _, group := range ruleGroups(t) {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			if seen[rule.Alert] {
				t.Errorf("%s is defined twice", rule.Alert)
			}
			seen[rule.Alert] = true
			if !strings.HasPrefix(rule.Alert, "NodeAuthorizer") {
				t.Errorf("%s has no owner", rule.Alert)
			}
			if severity := rule.Labels["severity"]; severity != "warning" && severity != "critical" {
				t.Errorf("%s: severity is %q", rule.Alert, severity)
			}
			for _, annotation := range []string{"summary", "description"} {
				if rule.Annotations[annotation] == "" {
					t.Errorf("%s has no %s", rule.Alert, annotation)
				}
			}
		}
	}
	if len(seen) == 0 {
		t.Error("there are no alerts")
	}
}

// docs/reference/reasons explains the codes in rules.
func TestRulesNameCodesThatExist(t *testing.T) {
	rules, _ := ruleExpressions(t)
	named := 0
	for _, e := range slices.Concat(rules, dashboardExpressions(t)) {
		for _, s := range selectors(t, e) {
			for _, m := range s.LabelMatchers {
				if m.Name != "code" {
					continue
				}
				for code := range strings.SplitSeq(m.Value, "|") {
					named++
					if reference.Link(reference.Reason, code) == "" {
						t.Errorf("%s: docs/reference/reasons does not have the code %s", e.where, code)
					}
				}
			}
		}
	}
	if named == 0 {
		t.Error("no rule names a code")
	}
}

func TestDashboardPanelsDoNotOverlap(t *testing.T) {
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range panels(t) {
		if ids[p.ID] {
			t.Errorf("panel %s has the id of another", p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && p.Description == "" {
			t.Errorf("panel %s is not explained", p.Title)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %s is outside", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[at]; ok {
					t.Fatalf("panel %s lies on %s", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
	}
}

// metricRow matches a row of the table in docs/reference/metrics.md: name, type, labels, meaning.
var metricRow = regexp.MustCompile("(?m)^\\| `(node_authorizer_[a-z_]+)` \\| ([a-z]+) \\| (.*?) \\| (.+) \\|$")

func TestMetricsPageHasEveryMetric(t *testing.T) {
	documented := map[string]family{}
	for _, row := range metricRow.FindAllStringSubmatch(read(t, docsFolder, "reference/metrics.md"), -1) {
		var labels []string
		for _, label := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, label[1])
		}
		slices.Sort(labels)
		documented[row[1]] = family{row[2], labels}
	}
	existing := served(t)
	for name, f := range existing {
		if !strings.HasPrefix(name, "node_authorizer_") {
			continue
		}
		d, ok := documented[name]
		if !ok {
			t.Errorf("docs/reference/metrics.md lacks %s, a %s with the labels %v", name, f.kind, f.labels)
		} else if d.kind != f.kind || !slices.Equal(d.labels, f.labels) {
			t.Errorf("docs/reference/metrics.md: %s is a %s with %v, want a %s with %v", name, d.kind, d.labels, f.kind, f.labels)
		}
	}
	for name := range documented {
		if _, ok := existing[name]; !ok {
			t.Errorf("docs/reference/metrics.md has %s, which no server serves", name)
		}
	}
}

func TestMetricsPageHasEveryAlertAndRecord(t *testing.T) {
	page := read(t, docsFolder, "reference/metrics.md")
	for _, group := range ruleGroups(t) {
		for _, rule := range group.Rules {
			if name := rule.Alert + rule.Record; !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/reference/metrics.md does not mention %s", name)
			}
		}
	}
}

// kube-apiserver's metrics in the page exist in this version.
func TestMetricsPageNamesMetricsOfAPIServers(t *testing.T) {
	known := ofAPIServers(t)
	named := regexp.MustCompile("\\| `(apiserver_[a-z_]+)").FindAllStringSubmatch(read(t, docsFolder, "reference/metrics.md"), -1)
	if len(named) == 0 {
		t.Error("docs/reference/metrics.md names no metric of kube-apiserver")
	}
	for _, name := range named {
		if _, ok := known[name[1]]; !ok {
			t.Errorf("kube-apiserver has no metric %s", name[1])
		}
	}
}
