package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// foreteller says what becomes of the nodes that use a role.
type foreteller struct {
	*predictor
	cluster *Cluster
	rules   iam.Rules
	// ours is true where node-authorizer is the cluster's authenticator.
	ours bool
	// nodes are the cluster's of AWS, by name; users has those whose kubelets were seen
	// to use a role, by its canonical ARN in lower case.
	nodes []sample
	users map[string]map[string]bool
	// region is that of a node where none was seen; empty if unknown.
	region string
}

func newForeteller(e *examination) *foreteller {
	f := &foreteller{
		predictor: newPredictor(e.cluster), cluster: e.cluster, rules: e.rules(), users: map[string]map[string]bool{},
		region: e.region(), ours: slices.ContainsFunc(e.cluster.Authenticators, func(a Authenticator) bool { return a.Kind == NodeAuthorizer }),
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

// samples are the nodes for which a role is tried: those that were seen to use it, all
// of the cluster's of its kind otherwise, or one that is made up.
func (f *foreteller) samples(arn string, purpose Purpose) []sample {
	var using, alike []sample
	users := f.users[strings.ToLower(arn)]
	for _, s := range f.nodes {
		if users[s.name] {
			using = append(using, s)
		}
		if s.kind == kindOf(purpose) {
			alike = append(alike, s)
		}
	}
	switch {
	case len(using) > 0:
		return using
	case len(alike) > 0:
		return alike
	}
	return []sample{madeUp(f.region, kindOf(purpose))}
}

// kindOf is the kind of nodes for which a role is tried: instances, if nothing shows
// another.
func kindOf(purpose Purpose) Purpose {
	if purpose.makesNodes() {
		return purpose
	}
	return ForNodes
}

// purpose guesses what a role is for. A username made of the session's name is that of
// hybrid nodes where the role is called so, or nodes of the kind are there and no
// instance was seen to use the role.
func (f *foreteller) purpose(arn, username string, groups []string) Purpose {
	guess := purposeOf(arn, username, groups, len(f.users[strings.ToLower(arn)]) > 0)
	if guess != ForNodes {
		return guess
	}
	var hybrid, others bool // of the nodes that use the role
	there, instances := false, false
	for _, s := range f.nodes {
		there, instances = there || s.kind == ForHybrid, instances || s.kind == ForNodes
		if f.users[strings.ToLower(arn)][s.name] {
			hybrid, others = hybrid || s.kind == ForHybrid, others || s.kind != ForHybrid
		}
	}
	for name := range f.users[strings.ToLower(arn)] {
		hybrid = hybrid || strings.HasPrefix(name, machinePrefix)
	}
	template, err := iam.ParseTemplate(username)
	bySession := err == nil && template.UsesSession() && !template.Uses(iam.PlaceholderPrivateDNSName)
	switch {
	case others:
		return ForNodes
	case hybrid, there && bySession:
		return ForHybrid
	case strings.Contains(strings.ToLower(roleName(arn)), "hybrid") && (bySession || there || !instances):
		return ForHybrid
	}
	return ForNodes
}

// fate predicts what becomes of a node that uses a mapped role. Of several nodes it
// shows the first for which something does not work, or else the first.
func (f *foreteller) fate(s *mappingSource, m iam.Mapping) RoleFate {
	purpose := f.purpose(m.ARN, m.Username, m.Groups)
	if s.purposes[m.ARN] != "" {
		purpose = s.purposes[m.ARN]
	}
	var shown RoleFate
	var who *kubelet
	for i, node := range f.samples(m.ARN, purpose) {
		fate, k := f.fateOf(s, m, node)
		if i == 0 || !fate.Works() {
			shown, who = fate, k
		}
		if !fate.Works() {
			break
		}
	}
	shown.Purpose = purpose
	f.judge(&shown, who)
	return shown
}

// fateOf is the fate of one node. The kubelet is nil if it is turned away.
func (f *foreteller) fateOf(s *mappingSource, m iam.Mapping, node sample) (RoleFate, *kubelet) {
	fate := RoleFate{
		ARN: m.ARN, Username: m.Username, Groups: m.Groups, Source: s.name, Place: s.locate(m.Place),
		Node: node.name, Seen: node.seen, Authenticator: f.authenticator(s),
	}
	k, err := f.user(s, m, node)
	if err != nil {
		fate.turnedAway(err.Error())
		return fate, nil
	}
	f.tell(&fate, k)
	return fate, &k
}

// tell puts what becomes of a kubelet into a fate.
func (f *foreteller) tell(fate *RoleFate, k kubelet) {
	fate.User = k.user
	fate.NodeIdentity = k.isNode()
	fate.Registers = f.registers(k)
	fate.Ready = f.ready(k, fate.Registers)
	fate.Serving = f.serving(k)
}

// judge says whether the kubelet of a fate may do everything. It takes a look at all
// of RBAC, and is left to the one node that is shown.
func (f *foreteller) judge(fate *RoleFate, k *kubelet) {
	if k != nil {
		_, fate.ClusterAdmin = f.cluster.administrator(k.user, k.groups)
	}
}

// user is who a node's kubelet is in Kubernetes. An error says why it is nobody.
func (f *foreteller) user(s *mappingSource, m iam.Mapping, node sample) (kubelet, error) {
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
			return kubelet{}, fmt.Errorf("the entry matches nobody: STS leaves the path %q out of what it says of a session", path)
		}
	}
	return node.kubelet(m.Username, m.Groups, func(text string) (string, error) {
		t, err := iam.ParseTemplate(text)
		if err != nil {
			return "", err
		}
		return node.expand(t, arn.Account)
	})
}

// kubelet is the node's, with a name and groups of which each text is resolved.
func (s sample) kubelet(username string, groups []string, resolve func(string) (string, error)) (kubelet, error) {
	k := kubelet{node: s.name}
	var err error
	if k.user, err = resolve(username); err != nil {
		return kubelet{}, err
	}
	for _, group := range groups {
		resolved, err := resolve(group)
		if err != nil {
			return kubelet{}, err
		}
		k.groups = append(k.groups, resolved)
	}
	k.groups = append(k.groups, groupAuthenticated)
	return k, nil
}

// pathOf is the path of a role's ARN, with its slashes; empty if there is none.
func pathOf(arn string) string {
	_, resource, found := strings.Cut(arn, ":role/")
	if slash := strings.LastIndexByte(resource, '/'); found && slash >= 0 {
		return "/" + resource[:slash+1]
	}
	return ""
}

// withoutPath is a role's ARN as STS has it.
func withoutPath(arn string) string {
	path := pathOf(arn)
	if path == "" {
		return arn
	}
	return strings.Replace(arn, ":role"+path, ":role/", 1)
}

// turnedAway is the fate of a node whose kubelet gets no name.
func (f *RoleFate) turnedAway(why string) {
	f.Registers = Outcome{No, "Unauthorized: " + why}
	f.Ready = Outcome{No, "it does not register"}
	f.Serving = Outcome{No, "it cannot ask for a certificate"}
}

// lost is the fate of a node whose role has an entry that cannot be used.
func (f *foreteller) lost(s *mappingSource, w writtenRole, because finding.Finding) RoleFate {
	purpose := f.purpose(w.arn, w.username, w.groups)
	node := f.samples(w.arn, purpose)[0]
	at := because.Place
	at.Key = w.key
	fate := RoleFate{
		Purpose: purpose, ARN: w.arn, Username: w.username, Groups: w.groups, Source: s.name, Place: s.locate(at),
		Node: node.name, Seen: node.seen, Authenticator: f.authenticator(s),
	}
	// aws-iam-authenticator takes of an entry what it can read, and braces as they are.
	arn, err := iam.ParseARN(w.arn)
	if _, session, wrong := iam.Canonical(w.arn); err == nil && wrong == nil && session == "" && w.username != "" && !f.ours && pathOf(w.arn) == "" {
		k, err := node.kubelet(w.username, w.groups, func(text string) (string, error) { return node.fill(text, arn.Account) })
		if err == nil {
			f.tell(&fate, k)
			f.judge(&fate, &k)
			return fate
		}
	}
	fate.turnedAway(because.Message)
	return fate
}

// foretell predicts for every role of every source, those for nodes first.
func (f *foreteller) foretell(sources []*mappingSource) []RoleFate {
	fates := []RoleFate{}
	for _, s := range sources {
		for _, fate := range f.ofSource(s) {
			if fate.Authenticator == IAMAuthenticator {
				fate.NodeAuthorizer = refused(sources, s, fate.ARN)
			}
			fates = append(fates, fate)
		}
	}
	if !slices.ContainsFunc(fates, func(r RoleFate) bool { return r.Purpose != ForOthers }) {
		for i := range fates {
			fates[i].Purpose = NotKnown
		}
	}
	slices.SortStableFunc(fates, func(a, b RoleFate) int { return cmp.Compare(a.Purpose.rank(), b.Purpose.rank()) })
	return fates
}

// counts reports whether of several entries about a role it is this one, which is not
// used, that decides: the last one for aws-iam-authenticator, here the one with the
// mistake.
func (f *foreteller) counts(s *mappingSource, i int, because finding.Finding) bool {
	if f.ours {
		return because.Code != iam.MappingDuplicate
	}
	return !slices.ContainsFunc(s.written[i+1:], func(later writtenRole) bool { return strings.EqualFold(later.arn, s.written[i].arn) && later.arn != "" })
}

// ofSource predicts for the roles of a source, in its order.
func (f *foreteller) ofSource(s *mappingSource) []RoleFate {
	var fates []RoleFate
	covered := func(arn string) bool { return s.purposes == nil && f.cluster.accessEntry(arn) != nil }
	for _, m := range s.mappings.Roles {
		if !covered(m.ARN) {
			fates = append(fates, f.fate(s, m))
		}
	}
	for i, w := range s.written {
		if covered(w.arn) {
			continue
		}
		if because, ok := s.unusable(w); ok && f.counts(s, i, because) {
			fates = append(fates, f.lost(s, w, because))
		}
	}
	for i := range fates {
		if fates[i].Groups == nil {
			fates[i].Groups = []string{}
		}
	}
	slices.SortStableFunc(fates, func(a, b RoleFate) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.KeyLine, b.Place.KeyLine),
			cmp.Compare(a.Place.Object, b.Place.Object), cmp.Compare(a.ARN, b.ARN))
	})
	return fates
}

func (p Purpose) rank() int {
	return slices.Index([]Purpose{ForNodes, ForHybrid, ForFargate, NotKnown, ForOthers}, p)
}
