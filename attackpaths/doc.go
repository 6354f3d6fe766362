// Package attackpaths computes what the holder of one credential can come to own in a cluster,
// and by which steps.
//
// Make a [Graph] from a [Cluster] with [New], and ask [Graph.From] for what a node, a service
// account, a user or a pod reaches:
//
//   - A [Holding] is something that an attacker can own: a node, the processes of a pod, the
//     identity of a service account, user or group, the content of a secret, the right to create
//     pods in a namespace, or the whole cluster.
//   - A technique leads from holdings to a holding. [Techniques] is the table of them; each is
//     described in docs/techniques.md. [TableOfRights] says of every right which of them use it.
//   - The result is everything that techniques reach from the start, each with its shortest
//     path.
//
// A step is certain if Kubernetes' own authorization and admission allow each of its requests
// and Kubernetes' own components then have the effect. It is possible if something decides that
// the cluster's objects do not show, such as a webhook; the step names it. A holding is certain
// if a path of certain steps leads to it.
//
// [Cluster].NodeScopes limits the tokens of service accounts (package nodescope). A scope counts in the
// mode Enforce; that kube-apiserver asks about it is taken for granted, as [Graph.Notes] says. What is
// held of an account is a token of one node then, or a credential without a node. Quarantines do not
// count: what they cut off had been reached before.
//
// [ScopeWarnings] names the rules of a NodeScope that let pass a right which techniques use.
//
// [Compare] says what nodes and service accounts reach in one state of a cluster and not in another.
//
// [WhatToChange] finds bindings, rules, mounts and Pod Security labels to change so that nodes no
// longer reach cluster-admin.
//
// What is reached through cluster-admin alone is not listed: cluster-admin owns everything.
package attackpaths
