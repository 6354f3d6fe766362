package attackpaths

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// rightCase is the least cluster in which a right gives something by a technique.
type rightCase struct {
	// who has the right; empty for shop/web.
	who string
	// in is the namespace in which it is granted, empty for the whole cluster. Names are the only objects that it is
	// about, and rule is the right in a role if it is not the verb on the resource.
	in, names, rule string
	// with are the objects and the other rights that the technique needs.
	with string
	// target is reached with the right, and not without it. Where the other rights give it in another way, because is how
	// the reason begins of the step that the right is for.
	target, because string
	start           holding
	// possible is true if something else decides, and ends if the steps end before the holding is there.
	possible, ends bool
	// listed is true where the path is not carried out: the pod that it makes names the volume or claim as the executor would,
	// and a right by name makes another one. TestWhatTheServerAsksForAnObjectThatIsCreatedByName
	// shows that the right makes it.
	listed bool
	eks    bool
	// emulated is true for rights that ended with Kubernetes 1.35. Scopes are the fields of a NodeScope for shop/web.
	emulated bool
	scopes   string
}

const (
	accountDB   = "ServiceAccount shop/db"
	namespaceIn = "Namespace shop"
	nodeUser    = "User system:node:web-1"
	admin       = "ClusterAdmin"
	ghost       = "ServiceAccount shop/ghost"
)

// also grants other rights to shop/web.
func also(namespace string, rules ...string) string {
	return roleOf("also", namespace, "shop/web", rules...)
}

var (
	withKey      = opaque("shop", "key")
	withGhost    = roleOf("g", "shop", "shop/ghost", "get configmaps@")
	withAlice    = roleOf("a", "shop", "user alice", "get configmaps@")
	withOps      = roleOf("a", "shop", "group ops", "get configmaps@")
	withTools    = namespace("tools", enforceLabel+": baseline")
	someReader   = clusterRole("reader", "get secrets@")
	enforceThere = enforceLabel + ": restricted"
	// enforcedEverywhere are the namespaces of every cluster with Pod Security.
	enforcedEverywhere = namespace("default", enforceThere) + namespace("kube-system", enforceThere) +
		namespace("kube-public", enforceThere) + namespace("kube-node-lease", enforceThere)
	selfApproved = []string{"create " + requests, "create certificatesigningrequests/nodeclient" + inCerts}
)

// byName is a case of a right to patch that creates an object: an apply also needs the right to create it, by its name.
func (c rightCase) byName(r attackpaths.TableRight, name string) rightCase {
	if r.Verb == "patch" {
		c.names = name
		c.with += roleOf("named", c.in, "shop/web", "create "+r.Resource+"@"+r.Group+" "+name)
	}
	return c
}

// rightCases make the case of a right for each technique that the table of all rights names.
var rightCases = map[attackpaths.Code]func(r attackpaths.TableRight) rightCase{
	attackpaths.SecretRead: func(r attackpaths.TableRight) rightCase {
		if r.Resource == "secrets" {
			return rightCase{in: "shop", with: withKey, target: "Secret shop/key"}
		}
		return rightCase{
			with: withKey + someWebhooks("ValidatingWebhookConfiguration"), target: "Secret shop/key", possible: true, ends: true,
		}
	},
	attackpaths.ServiceAccountTokenSecret: func(r attackpaths.TableRight) rightCase {
		other := "create secrets@"
		if r.Verb == "create" {
			other = "get secrets@"
		}
		return rightCase{in: "shop", with: also("shop", other), target: accountDB}
	},
	attackpaths.BootstrapToken: func(attackpaths.TableRight) rightCase {
		return rightCase{in: "kube-system", target: "Group system:bootstrappers", possible: true}
	},
	attackpaths.TokenRequest: func(r attackpaths.TableRight) rightCase {
		if r.Subresource == "token" {
			return rightCase{in: "shop", target: accountDB}
		}
		c := rightCase{in: "shop", with: withGhost + also("shop", "create serviceaccounts/token@ ghost"), target: ghost}
		return c.byName(r, "ghost")
	},
	attackpaths.Impersonate: impersonateCase,
	attackpaths.PodCreate: func(r attackpaths.TableRight) rightCase {
		if deletes(r) {
			return rightCase{
				in: "shop", target: namespaceIn,
				with: podOf("shop", "p", web1, "web") + also("shop", "create,patch pods@ p"),
			}
		}
		switch r.Resource {
		case "serviceaccounts":
			c := rightCase{in: "shop", with: withGhost + also("shop", "create pods@"), target: ghost}
			return c.byName(r, "ghost")
		case "namespaces":
			return rightCase{
				with: enforcedEverywhere + also("", "create pods@"), target: "Node web-1", because: "may create a namespace",
			}
		}
		return rightCase{in: "shop", target: namespaceIn}.byName(r, "new")
	},
	attackpaths.PodUpdate: podUpdateCase,
	attackpaths.PodExec: func(r attackpaths.TableRight) rightCase {
		c := rightCase{in: "shop", with: podDB, target: "Pod shop/db-1", possible: r.Subresource == "attach"}
		if r.Verb == "get" {
			c.with, c.emulated = podDB+nodeOf(web1), true
		}
		return c
	},
	attackpaths.TokenOfPodOnNode: func(attackpaths.TableRight) rightCase {
		return rightCase{who: "group system:nodes", in: "shop", names: "db", with: bare(podDB), target: accountDB, start: nodeWeb1}
	},
	attackpaths.NodeProxy: func(attackpaths.TableRight) rightCase { return rightCase{with: podDB, target: "Pod shop/db-1"} },
	attackpaths.PodEscape: func(r attackpaths.TableRight) rightCase {
		c := rightCase{
			with: mountedLogs, start: podLogs, target: nodeUser, possible: true,
		}
		if r.Resource == "pods" {
			c.in = "shop"
		}
		return c
	},
	attackpaths.BindRole:           bindRoleCase,
	attackpaths.EscalateRole:       escalateRoleCase,
	attackpaths.ApproveCertificate: approveCase,
	attackpaths.SignCertificate: func(r attackpaths.TableRight) rightCase {
		others := map[string]string{
			"":       "create " + requests,
			"status": "update certificatesigningrequests/status" + inCerts,
			"sign":   "sign signers" + inCerts,
		}
		delete(others, r.Subresource)
		if r.Resource == "signers" {
			delete(others, "sign")
			others[""] = "create " + requests
		}
		var rules []string
		for _, part := range []string{"", "status", "sign"} {
			if rule, ok := others[part]; ok {
				rules = append(rules, rule)
			}
		}
		return rightCase{with: also("", rules...), target: nodeUser, possible: true, ends: true}
	},
	attackpaths.NamespaceRelabel: func(attackpaths.TableRight) rightCase {
		return rightCase{in: "shop", with: also("shop", "create pods@"), target: "Node web-1"}
	},
	attackpaths.AdmissionControl: func(r attackpaths.TableRight) rightCase {
		c := rightCase{with: someWebhooks("MutatingWebhookConfiguration"), target: admin, possible: true, ends: true}
		switch r.Resource {
		case "mutatingadmissionpolicies":
			c.with = somePolicy + also("", "create mutatingadmissionpolicybindings"+inAdmis)
		case "mutatingadmissionpolicybindings":
			c.with = somePolicy + also("", "create mutatingadmissionpolicies"+inAdmis)
		}
		return c
	},
	attackpaths.APIService: func(attackpaths.TableRight) rightCase {
		return rightCase{target: admin, possible: true, ends: true}
	},
	attackpaths.VolumeControl: func(r attackpaths.TableRight) rightCase {
		if deletes(r) {
			return rightCase{ // Kubernetes keeps a volume while a claim has it
				with: withTools + driverVolume + also("tools", "create pods@") +
					roleOf("v", "", "shop/web", "create,patch persistentvolumes@ data"),
				target: "Node web-1", possible: true, listed: true,
			}
		}
		switch r.Resource {
		case "pods":
			return rightCase{in: "tools", with: withTools + also("", "create persistentvolumes@"), target: "Node web-1"}
		case "persistentvolumes":
			c := rightCase{with: withTools + also("tools", "create pods@"), target: "Node web-1", listed: r.Verb == "patch"}
			return c.byName(r, "new")
		}
		// A controller makes the claims of ephemeral volumes, so that a right to claims is for where these are refused.
		c := rightCase{in: "guarded", target: "Node web-1", with: namespace("guarded", enforceLabel+": baseline") +
			policyFor("p", "CREATE", "pods", "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.ephemeral))") +
			roleOf("v", "", "shop/web", "create persistentvolumes@") + also("guarded", "create pods@")}
		c.listed = r.Verb == "patch"
		return c.byName(r, "new")
	},
	attackpaths.NodeIdentityConfig: func(r attackpaths.TableRight) rightCase {
		c := rightCase{target: admin, possible: true, ends: true, eks: true}
		if r.Resource == "configmaps" {
			if c.in = "kube-system"; r.Verb != "create" {
				c.with = someMappings
			}
			return c
		}
		c.with = mappingsKind
		return c
	},
	attackpaths.StealPods: func(r attackpaths.TableRight) rightCase {
		// Labels stay on nodes after a case.
		label := "node-restriction.kubernetes.io/" + r.Verb + r.Subresource
		return rightCase{
			with:  podOf("shop", "agent", web1, "web") + podOf("shop", "db-1", "", "db", "  nodeSelector: {"+label+": db}"),
			start: nodeWeb1, target: accountDB, possible: true,
		}
	},
}

// deletes reports whether a right is one to delete objects: who creates an object under the name of another deletes that first.
func deletes(r attackpaths.TableRight) bool { return strings.HasPrefix(r.Verb, "delete") }

func impersonateCase(r attackpaths.TableRight) rightCase {
	switch r.Resource + r.Group {
	case "serviceaccounts":
		return rightCase{in: "shop", target: accountDB}
	case "users":
		return rightCase{with: withAlice, target: "User alice"}
	case "groups":
		return rightCase{with: withOps + also("", "impersonate users@ nobody"), target: "Group ops"}
	}
	mode := strings.TrimPrefix(r.Verb, "impersonate:")
	c := rightCase{with: also("", everyVerb(mode))}
	switch r.Resource {
	case "users":
		c.with, c.target = c.with+withAlice, "User alice"
	case "groups":
		c.with, c.target = c.with+withOps+roleOf("u", "", "shop/web", "impersonate:user-info users"+identities+" nobody"), "Group ops"
	case "serviceaccounts":
		c.in, c.target = "shop", accountDB
	case "nodes":
		c.target = nodeUser
		if mode == "associated-node" {
			c.with += podOf("shop", "agent", web1, "web")
			c.start = holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "agent"}
		}
	case "userextras":
		c = rightCase{
			who: "shop/db", rule: r.Verb + " userextras/authentication.kubernetes.io/node-name" + identities, names: pay1,
			start: holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "near-1"}, target: "Pod shop/far-1",
			with:   withAgent + also("shop", "create pods/exec@") + roleOf("t", "shop", "shop/db", "impersonate serviceaccounts@ web"),
			scopes: "podsOnNode: [{resources: [pods/exec], verbs: [create]}], anywhere: [" + asksAbout + "]",
		}
	case "*":
		c.rule, c.target = everyVerb("user-info"), "User alice"
		c.with = withAlice + also("", "impersonate:user-info users"+identities)
	}
	return c
}

func podUpdateCase(r attackpaths.TableRight) rightCase {
	if r.Resource == "pods" {
		return rightCase{in: "shop", with: podDB, target: "Pod shop/db-1"}
	}
	kind := map[string]string{
		"deployments": "Deployment", "daemonsets": "DaemonSet", "statefulsets": "StatefulSet", "replicasets": "ReplicaSet",
		"replicationcontrollers": "ReplicationController", "cronjobs": "CronJob",
	}[r.Resource]
	version := strings.TrimPrefix(r.Group+"/v1", "/")
	c := rightCase{in: "shop", target: namespaceIn, with: workloadOf(version, kind, "shop", "web", 1)}
	switch kind {
	case "ReplicationController":
		c.with = replaced(c.with, "{matchLabels: {app: web}}", "{app: web}")
		c.possible = true
	case "ReplicaSet":
		c.possible = true // their pods stay as they are
	case "CronJob":
		c.with, c.possible = someCronJob, true // no pod shows it
	}
	return c
}

func bindRoleCase(r attackpaths.TableRight) rightCase {
	held := withKey + someReader + binding("ClusterRole", "reader", "shop", "held", "user nobody")
	if deletes(r) {
		in := map[string]string{"rolebindings": "shop"}[r.Resource]
		c := rightCase{in: in, target: admin, with: someReader + binding("ClusterRole", "reader", in, "ex", "user nobody") +
			also(in, "create,update "+r.Resource+inRBAC+" ex", "bind clusterroles"+inRBAC+" cluster-admin")}
		if in != "" {
			c.target = namespaceIn
		}
		return c
	}
	switch r.Resource {
	case "clusterrolebindings":
		return rightCase{
			target: admin,
			with: binding("ClusterRole", "cluster-admin", "", "held", "user nobody") +
				also("", "bind clusterroles"+inRBAC+" cluster-admin"),
		}
	case "rolebindings":
		return rightCase{in: "shop", with: held + also("shop", "bind clusterroles"+inRBAC+" reader"), target: "Secret shop/key"}
	case "clusterroles":
		return rightCase{with: also("", "create clusterrolebindings"+inRBAC), names: "cluster-admin", target: admin}
	}
	return rightCase{
		in: "shop", names: "reader", target: "Secret shop/key",
		with: withKey + roleOf("reader", "shop", "user nobody", "get secrets@") + also("shop", "create rolebindings"+inRBAC),
	}
}

func escalateRoleCase(r attackpaths.TableRight) rightCase {
	kind, namespace, target := "ClusterRole", "", admin
	if r.Resource == "roles" {
		kind, namespace, target = "Role", "shop", namespaceIn
	}
	if deletes(r) {
		return rightCase{in: namespace, target: target, with: roleOf("held", namespace, "shop/web", "get configmaps@") +
			also(namespace, "escalate,create "+r.Resource+inRBAC)}
	}
	other := "escalate "
	if r.Verb == "escalate" {
		other = "patch "
	}
	c := rightCase{in: namespace, target: target, with: also(namespace, other+r.Resource+inRBAC)}
	if r.Verb == "create" {
		c.with += binding(kind, "gone", namespace, "b", "shop/web")
	}
	return c
}

func approveCase(r attackpaths.TableRight) rightCase {
	const approvals, signer = "patch certificatesigningrequests/approval" + inCerts, "approve signers" + inCerts + " " + kubeletSigner
	c := rightCase{target: nodeUser, with: also("", selfApproved...)} // who reads a request that is approved by itself
	switch {
	case r.Resource == "signers":
		c.names, c.with = kubeletSigner, also("", "create "+requests, approvals)
	case r.Subresource == "nodeclient":
		c.with = also("", "create,list "+requests)
	case r.Subresource == "approval" && r.Verb != "get":
		c.with = also("", "create "+requests, signer)
	case r.Subresource == "" && r.Verb == "create":
		c.with = also("", approvals, signer)
	}
	return c
}
