package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

func (c *Cluster) unread(resources ...string) []Missing {
	return selected(c.Missing, func(m Missing) bool { return slices.Contains(resources, m.Resource) })
}

// whole reports whether the input has all objects of a kind. An API server and a snapshot have
// them; files may have a part of them.
func (c *Cluster) whole() bool { return c.Live || c.Snapshot }

func (c *Cluster) give(command, file string) string {
	return fmt.Sprintf("%s > %s, and %s %s", command, file, c.flag(), file)
}

func (c *Cluster) flag() string {
	if c.Live {
		return "--add"
	}
	return "--from"
}

func sortMissing(list []Missing) []Missing {
	slices.SortStableFunc(list, func(a, b Missing) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(list)
}

// noTokens reports whether the cluster is known not to map AWS roles: no API server has a token
// webhook, or there is no AWS node and no other input about AWS tokens. A node without a provider
// id in a file may be an AWS node, because the file may have only a part of it.
func (e *examination) noTokens() bool {
	c := e.cluster
	if setups := c.setups(); len(setups) > 0 && !slices.ContainsFunc(setups, func(s setup) bool {
		return s.server == nil || s.server.Unseen != "" || s.server.Flags.has(flagTokenWebhook)
	}) {
		return true
	}
	if len(c.Credentials)+len(c.Authenticators)+len(c.AccessEntries) > 0 || len(c.unread("nodes")) > 0 || len(c.Nodes) == 0 && !c.Live ||
		c.Snapshot {
		return false // a snapshot has no provider ids
	}
	return !slices.ContainsFunc(c.Nodes, func(n Node) bool {
		return n.ProviderID == "" && !c.Live || strings.HasPrefix(n.ProviderID, "aws://") ||
			strings.HasPrefix(n.ProviderID, "eks-hybrid://")
	})
}

func (e *examination) mappingsLack() []Missing {
	list := e.cluster.unread("configmaps", resourceMappings, accessEntrySourceName)
	sources := e.cluster.sources()
	for _, s := range sources {
		if s.broken() {
			list = append(list, Missing{s.name, "its roles cannot be read", "see the findings about it"})
		}
	}
	if len(list) > 0 || len(sources) > 0 || e.noTokens() || e.cluster.Live && e.cluster.AccessEntriesGiven {
		return list
	}
	reason := "no mapping of AWS roles was given"
	switch {
	case e.cluster.Live:
		reason = fmt.Sprintf("there is no %s/%s, and how AWS tokens are mapped otherwise does not show", kubeSystem, awsAuthName)
	case e.cluster.Snapshot:
		reason = "a snapshot has none"
	}
	remedy := fmt.Sprintf("give aws-auth, or the file that the authenticator reads, with %s; "+
		"with EKS access entries there may be none: give what aws eks list-access-entries and describe-access-entry print, "+
		"and leave the check out (--checks)", e.cluster.flag())
	return []Missing{{"configmaps", reason, remedy}}
}

func (e *examination) nodesLack() []Missing {
	c := e.cluster
	if len(c.sources()) == 0 && len(c.unread("configmaps", resourceMappings)) == 0 && e.noTokens() {
		return nil
	}
	list := append(e.mappingsLack(), c.unread("nodes", resourceRequests)...)
	list = append(list, e.rightsLack()...)
	if len(c.Nodes) == 0 && !c.whole() {
		list = append(list, Missing{
			"nodes", "none was given: the predictions are about a node as AWS would make it",
			c.give("kubectl get nodes -o yaml", "nodes.yaml"),
		})
	}
	if unseen := e.rolesUnseen(); len(unseen) > 0 {
		list = append(list, Missing{
			resourceRequests,
			fmt.Sprintf(
				"which AWS role %s has does not show: %s",
				render.Plural(len(unseen), "a node", "each of "+render.Count(len(unseen), "node")),
				some(unseen),
			),
			"examine a live cluster whose nodes are Ready an hour after aws-auth was written, " +
				"or give the certificate requests of these nodes",
		})
	}
	return list
}

// rolesUnseen returns AWS nodes whose role is not known from a request, unless they are Ready long
// after the last change of the mappings.
func (e *examination) rolesUnseen() []string {
	shown := map[string]bool{}
	for _, r := range e.cluster.Requests {
		shown[r.node()] = shown[r.node()] || r.RoleARN != ""
	}
	return e.cluster.nodesWhose(func(n *Node) bool {
		_, ok := awsNode(n)
		return ok && !shown[n.Name] && !(e.settled() && n.Ready == corev1.ConditionTrue)
	})
}

func (c *Cluster) nodesWhose(condition func(*Node) bool) []string {
	var names []string
	for i := range c.Nodes {
		if condition(&c.Nodes[i]) {
			names = append(names, c.Nodes[i].Name)
		}
	}
	return names
}

func (e *examination) rightsLack() []Missing {
	list := e.cluster.unread(rbacResources()...)
	if len(list) == 0 && !e.cluster.RBACKnown {
		reason := "not all roles and bindings were given"
		if len(e.cluster.Bindings) == 0 {
			reason = "no roles and bindings were given"
		}
		list = append(list, Missing{
			resourceRoles, reason,
			e.cluster.give("kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml", "rbac.yaml"),
		})
	}
	return list
}

func (e *examination) tokensLack() []Missing {
	c := e.cluster
	if len(c.Credentials)+len(c.Authenticators)+len(c.sources()) == 0 && e.noTokens() {
		return nil
	}
	known := e.options.ClusterID != "" || slices.ContainsFunc(c.Authenticators, func(a Authenticator) bool { return a.ClusterID != "" })
	otherCredential := slices.ContainsFunc(c.Credentials, func(c Credential) bool { return !c.Own })
	var list []Missing
	if !otherCredential {
		list = append(list, Missing{
			"kubeconfig", "no kubeconfig of a node or user that makes AWS tokens was given",
			fmt.Sprintf("give it with %s, or leave the check out (--checks)", c.flag()),
		})
	}
	if otherCredential && !known {
		list = append(list, Missing{
			"cluster id", "for which cluster tokens have to be does not show",
			fmt.Sprintf("name it with --cluster-id, or give the authenticator's configuration with %s", c.flag()),
		})
	}
	return list
}

func (e *examination) kubeletsLack() []Missing {
	c := e.cluster
	list := append(c.unread("nodes", resourceRequests), e.rightsLack()...)
	const log = "an audit log shows it: node-authorizer audit LOG -o json > audit.json, and --audit-report audit.json"
	switch unseen := e.namesUnseen(); {
	case len(c.unread("nodes", resourceRequests)) > 0:
	case len(c.Requests) == 0 && c.Snapshot:
		list = append(list, Missing{resourceRequests, "a snapshot has none", log})
	case len(c.Nodes) == 0 && len(c.Requests) == 0 && !c.Live:
		list = append(list, Missing{
			resourceRequests, "none was given", c.give("kubectl get nodes,certificatesigningrequests -o yaml", "nodes.yaml"),
		})
	case len(c.Nodes) == 0 && !c.whole():
		list = append(list, Missing{
			"nodes", "none was given: whether all kubelets were seen is not known", c.give("kubectl get nodes -o yaml", "nodes.yaml"),
		})
	case len(unseen) > 0:
		list = append(list, Missing{
			resourceRequests,
			fmt.Sprintf("of %d of %s none shows the name: %s", len(unseen), render.Count(len(c.Nodes), "kubelet"), some(unseen)),
			log,
		})
	}
	return list
}

func (e *examination) namesUnseen() []string {
	seen := map[string]bool{}
	for _, r := range readRequests(e.cluster).last {
		seen[r.node()] = true
	}
	return e.cluster.nodesWhose(func(n *Node) bool { return !seen[n.Name] && !e.options.Audit.shows(n.Name, len(e.cluster.Nodes)) })
}

func (e *examination) setupsLack(setups []setup) []Missing {
	if len(setups) > 0 {
		return nil
	}
	if list := e.cluster.unread("pods"); len(list) > 0 {
		return list
	}
	reason := "no kube-apiserver was found, as where a provider runs it"
	if e.cluster.Snapshot {
		reason = "a snapshot does not show how kube-apiserver is set up"
	}
	otherwise := "leave the check out (--checks)"
	if e.cluster.Live {
		otherwise = "ask the API server itself with --probe, or " + otherwise
	}
	return []Missing{{
		resourceAPIServers, reason,
		fmt.Sprintf("give its manifest with %s "+
			"(/etc/kubernetes/manifests/kube-apiserver.yaml, the config of k3s or RKE2, the machine config of Talos); "+
			"on OpenShift let pods and configmaps in %s be read; where neither is possible %s",
			e.cluster.flag(), openShiftNamespace, otherwise),
	}}
}

func (e *examination) authorizationLacks() []Missing {
	if e.options.Probes != nil {
		return e.probesLack(CheckAuthorization)
	}
	setups := e.cluster.setups()
	list := e.setupsLack(setups)
	for i := range setups {
		s := &setups[i]
		switch {
		case s.authorizers == nil && s.invalid == nil:
			list = append(list, Missing{cmp.Or(s.lacking, "AuthorizationConfiguration"), s.unknown, e.cluster.giveFlags(s.server)})
		case s.authorizers == nil:
			list = append(list, Missing{"AuthorizationConfiguration", s.unknown, "see the finding about it"})
		case s.asks(modeWebhook) && !s.asks(modeNode) && !s.asks(modeAlwaysAllow) && !s.asksUs():
			list = append(list, Missing{
				"webhook", s.name + " leaves nodes to a webhook, and what that allows does not show",
				"node-authorizer audit LOG --authorization-config FILE asks it; " +
					"if it is node-authorizer's, name it node-authorizer in an AuthorizationConfiguration",
			})
		}
	}
	return list
}

func (c *Cluster) giveFlags(a *APIServer) string {
	switch {
	case a != nil && a.Distribution == OpenShift && a.Revision != "":
		return c.give(fmt.Sprintf("kubectl -n %s get configmap config-%s -o yaml", openShiftNamespace, a.Revision), "config.yaml")
	case a != nil && a.Flags.last(flagConfig) == talosAuthorizationFile:
		return "give the machine config of Talos with " + c.flag()
	}
	return "give it with " + c.flag()
}

func (e *examination) admissionLacks() []Missing {
	if e.options.Probes != nil {
		return e.probesLack(CheckAdmission)
	}
	setups := e.cluster.setups()
	list := e.setupsLack(setups)
	for i := range setups {
		switch s := &setups[i]; {
		case s.server == nil:
			list = append(list, Missing{
				resourceAPIServers, s.name + " is a configuration alone, which does not show the flags of the API server",
				"give the manifest of kube-apiserver with " + e.cluster.flag(),
			})
		case s.server.Unseen != "":
			list = append(list, Missing{s.server.Lacking, s.server.Unseen, e.cluster.giveFlags(s.server)})
		case !s.server.nodeRestriction() && len(e.cluster.unread(resourceWebhooks)) > 0:
			list = append(list, e.cluster.unread(resourceWebhooks)...)
		}
	}
	return list
}
