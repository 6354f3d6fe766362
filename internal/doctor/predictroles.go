package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// rolePredictor predicts what nodes that use a role can do.
type rolePredictor struct {
	*accessPredictor
	cluster *Cluster
	rules   iam.Rules
	// ours is true if node-authorizer is the cluster's authenticator.
	ours bool
	// nodes are the cluster's nodes on AWS, by name; users has the nodes whose kubelets were seen
	// to use a role, by its canonical ARN in lower case.
	nodes []sample
	users map[string]map[string]bool
	// region is the region for sample nodes; empty if unknown.
	region string
}

func newRolePredictor(e *examination) *rolePredictor {
	f := &rolePredictor{
		accessPredictor: newAccessPredictor(e.cluster), cluster: e.cluster, rules: e.rules(), users: map[string]map[string]bool{},
		region: e.region(),
		ours:   slices.ContainsFunc(e.cluster.Authenticators, func(a Authenticator) bool { return a.Kind == NodeAuthorizer }),
	}
	for i := range e.cluster.Nodes {
		if s, ok := awsNode(&e.cluster.Nodes[i]); ok {
			f.nodes = append(f.nodes, s)
		}
	}
	for _, r := range e.cluster.Requests {
		node, ok := strings.CutPrefix(r.CommonName, nodeidentity.UserPrefix)
		if arn := strings.ToLower(r.RoleARN); ok && arn != "" {
			if f.users[arn] == nil {
				f.users[arn] = map[string]bool{}
			}
			f.users[arn][node] = true
		}
	}
	return f
}

// samples are the nodes for which a role is tried: nodes that were seen to use it, otherwise all
// of the cluster's nodes of its kind, or one that is made up.
func (f *rolePredictor) samples(arn string, purpose Purpose) []sample {
	kind := ForNodes // instances by default
	if purpose.makesNodes() {
		kind = purpose
	}
	users := f.users[strings.ToLower(arn)]
	if using := selected(f.nodes, func(s sample) bool { return users[s.name] }); len(using) > 0 {
		return using
	}
	if alike := selected(f.nodes, func(s sample) bool { return s.kind == kind }); len(alike) > 0 {
		return alike
	}
	return []sample{madeUp(f.region, kind)}
}

// purpose guesses what a role is for. A username made of the session's name belongs to
// hybrid nodes if the role's name says so, or if there are hybrid nodes and no instance was seen to use the role.
func (f *rolePredictor) purpose(arn, username string, groups []string) Purpose {
	users := f.users[strings.ToLower(arn)]
	if guess := purposeOf(arn, username, groups, len(users) > 0); guess != ForNodes {
		return guess
	}
	var hybrid, notHybrid bool // of the nodes that use the role
	anyHybrid, anyInstance := false, false
	for _, s := range f.nodes {
		anyHybrid, anyInstance = anyHybrid || s.kind == ForHybrid, anyInstance || s.kind == ForNodes
		if users[s.name] {
			hybrid, notHybrid = hybrid || s.kind == ForHybrid, notHybrid || s.kind != ForHybrid
		}
	}
	for name := range users {
		hybrid = hybrid || strings.HasPrefix(name, machinePrefix)
	}
	template, err := iam.ParseTemplate(username)
	bySession := err == nil && template.UsesSession() && !template.Uses(iam.PlaceholderPrivateDNSName)
	switch {
	case notHybrid:
		return ForNodes
	case hybrid, anyHybrid && bySession:
		return ForHybrid
	case strings.Contains(strings.ToLower(roleName(arn)), "hybrid") && (bySession || anyHybrid || !anyInstance):
		return ForHybrid
	}
	return ForNodes
}

// predictRole predicts for a node that uses a mapped role. Of several nodes it
// shows the first for which something does not work, or else the first.
func (f *rolePredictor) predictRole(s *mappingSource, m iam.Mapping) RolePrediction {
	purpose := s.purposes[m.ARN]
	if purpose == "" {
		purpose = f.purpose(m.ARN, m.Username, m.Groups)
	}
	var shown RolePrediction
	for i, node := range f.samples(m.ARN, purpose) {
		prediction := f.prediction(s, m, purpose, node)
		if k, err := f.user(s, m, node); err != nil {
			prediction.unauthorized(err.Error())
		} else {
			f.predictAccess(&prediction, k)
		}
		works := prediction.Works()
		if i == 0 || !works {
			shown = prediction
		}
		if !works {
			break
		}
	}
	f.predictAdmin(&shown)
	return shown
}

func (f *rolePredictor) prediction(s *mappingSource, m iam.Mapping, purpose Purpose, node sample) RolePrediction {
	return RolePrediction{
		Purpose: purpose, ARN: m.ARN, Username: m.Username, Groups: append([]string{}, m.Groups...), Source: s.name,
		Place: s.locate(m.Place), Node: node.name, Seen: node.seen, Authenticator: f.authenticator(s),
	}
}

func (f *rolePredictor) predictAccess(prediction *RolePrediction, k kubelet) {
	prediction.kubelet = k
	prediction.User = k.user
	identity := k.identity()
	prediction.NodeIdentity = identity.IsNode && identity.Name == k.node && k.node != ""
	prediction.Registers = f.registers(k)
	prediction.Ready = f.ready(k, prediction.Registers)
	prediction.Serving = f.serving(k)
}

// predictAdmin predicts whether the kubelet may do everything. It reads all of RBAC, and so is
// called only for the node that is shown.
func (f *rolePredictor) predictAdmin(prediction *RolePrediction) {
	if k := prediction.kubelet; k.user != "" {
		_, prediction.ClusterAdmin = f.cluster.administrator(k.user, k.groups)
	}
}

// user returns the Kubernetes user of a node's kubelet, or an error if authentication fails.
func (f *rolePredictor) user(s *mappingSource, m iam.Mapping, node sample) (kubelet, error) {
	arn, err := iam.ParseARN(m.ARN)
	if err != nil {
		return kubelet{}, err
	}
	if f.rules.Partition != "" && arn.Partition != f.rules.Partition {
		return kubelet{}, fmt.Errorf("its role is of partition %s, the cluster is in %s", arn.Partition, f.rules.Partition)
	}
	if path := pathOf(m.ARN); path != "" {
		found, ok := s.mappings.Find(withoutPath(m.ARN), arn.Account, f.rules.RolePaths)
		if !ok || found.Place != m.Place {
			return kubelet{}, fmt.Errorf("the entry matches nobody: STS leaves the path %q out of the ARN of a session", path)
		}
	}
	return node.kubelet(m.Username, m.Groups, func(text string) (string, error) {
		t, err := iam.ParseTemplate(text)
		if err != nil {
			return "", err
		}
		return t.Expand(func(placeholder string) (string, error) { return node.value(placeholder, arn.Account) })
	})
}

// kubelet returns the kubelet of the node, with the resolved username and groups.
func (s sample) kubelet(username string, groups []string, resolve func(string) (string, error)) (kubelet, error) {
	var names []string
	for _, text := range append([]string{username}, groups...) {
		name, err := resolve(text)
		if err != nil {
			return kubelet{}, err
		}
		names = append(names, name)
	}
	return kubelet{names[0], append(names[1:], groupAuthenticated), s.name}, nil
}

// pathOf returns the path of a role's ARN, with its slashes; empty if there is none.
func pathOf(arn string) string {
	_, resource, found := strings.Cut(arn, ":role/")
	if slash := strings.LastIndexByte(resource, '/'); found && slash >= 0 {
		return "/" + resource[:slash+1]
	}
	return ""
}

// withoutPath returns a role's ARN without its path, as STS does.
func withoutPath(arn string) string {
	return strings.Replace(arn, ":role"+cmp.Or(pathOf(arn), "/"), ":role/", 1)
}

func (f *RolePrediction) unauthorized(why string) {
	f.Registers = Outcome{No, "Unauthorized: " + why}
	f.Ready = Outcome{No, "it does not register"}
	f.Serving = Outcome{No, "it cannot ask for a certificate"}
}

func (f *rolePredictor) predictUnusable(s *mappingSource, w iam.Mapping, because finding.Finding) RolePrediction {
	purpose := f.purpose(w.ARN, w.Username, w.Groups)
	node := f.samples(w.ARN, purpose)[0]
	key := w.Place.Key
	w.Place = because.Place
	w.Place.Key = key
	prediction := f.prediction(s, w, purpose, node)
	// aws-iam-authenticator uses the parts of an entry that it can read, and keeps unknown
	// placeholders unchanged.
	arn, err := iam.ParseARN(w.ARN)
	if _, session, wrong := iam.Canonical(w.ARN); err == nil && wrong == nil && session == "" && w.Username != "" && !f.ours &&
		pathOf(w.ARN) == "" {
		k, err := node.kubelet(w.Username, w.Groups, func(text string) (string, error) { return node.fill(text, arn.Account) })
		if err == nil {
			f.predictAccess(&prediction, k)
			f.predictAdmin(&prediction)
			return prediction
		}
	}
	prediction.unauthorized(because.Message)
	return prediction
}

// predict predicts for every role of every source, roles for nodes first.
func (f *rolePredictor) predict(sources []*mappingSource) []RolePrediction {
	predictions := []RolePrediction{}
	for _, s := range sources {
		for _, prediction := range f.ofSource(s) {
			if prediction.Authenticator == IAMAuthenticator {
				prediction.NodeAuthorizer = refused(sources, s, prediction.ARN)
			}
			predictions = append(predictions, prediction)
		}
	}
	if !slices.ContainsFunc(predictions, func(r RolePrediction) bool { return r.Purpose != ForOthers }) {
		for i := range predictions {
			predictions[i].Purpose = NotKnown
		}
	}
	order := []Purpose{ForNodes, ForHybrid, ForFargate, NotKnown, ForOthers}
	slices.SortStableFunc(predictions, func(a, b RolePrediction) int {
		return cmp.Compare(slices.Index(order, a.Purpose), slices.Index(order, b.Purpose))
	})
	return predictions
}

// ofSource predicts for the roles of a source, in their order. Of several entries about a role, the last one counts for
// aws-iam-authenticator, and for node-authorizer the one with the mistake.
func (f *rolePredictor) ofSource(s *mappingSource) []RolePrediction {
	var predictions []RolePrediction
	covered := func(arn string) bool { return s.purposes == nil && f.cluster.accessEntry(arn) != nil }
	for _, m := range s.mappings.Roles {
		if !covered(m.ARN) {
			predictions = append(predictions, f.predictRole(s, m))
		}
	}
	for i, w := range s.written {
		because, unusable := s.unusable(w)
		counts := because.Code != iam.MappingDuplicate
		if !f.ours {
			counts = !slices.ContainsFunc(s.written[i+1:], func(later iam.Mapping) bool {
				return strings.EqualFold(later.ARN, w.ARN) && later.ARN != ""
			})
		}
		if unusable && counts && !covered(w.ARN) {
			predictions = append(predictions, f.predictUnusable(s, w, because))
		}
	}
	slices.SortStableFunc(predictions, func(a, b RolePrediction) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.KeyLine, b.Place.KeyLine),
			cmp.Compare(a.Place.Object, b.Place.Object), cmp.Compare(a.ARN, b.ARN))
	})
	return predictions
}
