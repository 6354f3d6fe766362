package attackpaths_test

// agentsIntroduction begins docs/evidence/known-agents.md.
const agentsIntroduction = `# Known agents

<!-- Written by "UPDATE_GOLDEN=1 go test ./attackpaths -run TestKnownAgents"; do not edit. -->

An agent that runs on every node puts its credential on every node. This page says what well-known
agents and operators give to somebody who has broken into **one** node, and what to change. It is
the output of ` + "`attack-paths`" + ` for each of them, with the rights that the release has with its default
values. The last section says [what the page does not say](#limits).

Each agent is installed alone in a cluster of Kubernetes 1.37 with kubeadm's roles and bindings:

- a control plane node with its static pods, and three workers without taints;
- a DaemonSet has a pod on each node that it tolerates, and every other workload a pod on one worker,
  the *controllers' node*;
- namespaces enforce no Pod Security level, and there are no webhooks or admission policies;
- four secrets in four namespaces that no pod uses, an application with an account without rights,
  and an account outside of the agent that is bound to cluster-admin, as a pipeline that deploys has.

*Certain* and *possible* mean the same as in [techniques](../reference/techniques/README.md): a path is certain if Kubernetes'
own authorization and admission allow each step. Other nodes than the controllers' node reach the rights of the
controllers only as *possible*: such a node has the scheduler move their pods to it
([StealPods](../reference/techniques/cluster.md#stealpods)).

The facts of each agent are a file in [examples/agents](../../examples/agents) (clusters:
[examples/clusters](../../examples/clusters)): accounts, rules in a normal form, and the parts of pod
templates that matter. Ask what an agent would give in your cluster:

` + "```sh" + `
node-authorizer diff --with examples/agents/kured.yaml
node-authorizer attack-paths serviceaccount/kured -n kube-system --with examples/agents/kured.yaml
` + "```" + `

The changes under each agent are verified: the cluster was evaluated again without the removed
rights. None of the rules in a list can be kept; other lists may exist. Rules are numbered as in
the file, which has a rule for each dangerous resource. The changes do not say
whether they break the agent: it may need the right. If it does, run its controllers on nodes of their
own. The last row of an agent's table is that case: the pods of Deployments and the like have a node
selector for a label under ` + "`node-restriction.kubernetes.io/`" + ` that a tainted node pool has, so that no
other node gets them. That does not help where a DaemonSet's account has the right: there a feature
has to be turned off, or the agent kept off the nodes that are most exposed.
`

// agentsLimits end it.
const agentsLimits = `
## Limits

- The facts are for the named release and default values. Values that turn features on add
  rights, and so do later releases: make the file anew from the release and the values that you install.
- Hooks of Helm charts, which run while a chart is installed or removed, are not evaluated. Neither are
  roles without a binding, such as the roles that charts add to admin, edit and view.
- Controllers create more pods and accounts than charts contain (a driver's pods, jobs). Only the objects
  of the named source are evaluated.
- A right on an operator's own resources can be worth the rights of its controllers. Such rights are in the files,
  but followed only with [techniques of your own](../reference/techniques/own.md).
- Rights outside of Kubernetes, such as the rights of a cloud role, are not seen.
- In your cluster, webhooks, admission policies and Pod Security may make steps only possible, or
  refuse them; other accounts and pods may add paths. So evaluate your own cluster too.
`
