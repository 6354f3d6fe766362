package main

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// crowd is a cluster in which one object is used on many nodes, the members,
// and strangers ask about it too. Each node has one pod.
//
// Either every pod of a member mounts the one configmap; or every one has a
// claim of its own, bound to a volume that needs the one secret.
type crowd struct {
	members, strangers int
	behindVolumes      bool
}

const sharedObject = 0

func (c crowd) pod(i int) *corev1.Pod {
	var volumes []corev1.Volume
	switch {
	case i >= c.members:
	case c.behindVolumes:
		volumes = append(volumes, claimVolume(claimName(i)))
	default:
		volumes = append(volumes, configVolume(configName(sharedObject)))
	}
	return newPod(i, namespaceName(0), podName(i), accountName(i), volumes...)
}

func (c crowd) volume(i int) *corev1.PersistentVolume {
	return newVolume(volumeName(i), namespaceName(0), claimName(i),
		&corev1.SecretReference{Namespace: namespaceName(0), Name: secretName(sharedObject)})
}

func (c crowd) fill(to contender) {
	for i := range c.members + c.strangers {
		to.pods.OnAdd(c.pod(i), true)
	}
	if c.behindVolumes {
		for i := range c.members {
			to.volumes.OnAdd(c.volume(i), true)
		}
	}
}

// ask makes questions about the one object, by members (who may read it) and by
// strangers (who may not).
func (c crowd) ask(count int) (members, strangers questions) {
	attributes := func(u user.Info) *authorizer.AttributesRecord {
		a := authorizer.AttributesRecord{
			User: u, Verb: "get", APIVersion: "v1", ResourceRequest: true,
			Resource: "configmaps", Namespace: namespaceName(0), Name: configName(sharedObject),
		}
		if c.behindVolumes {
			a.Resource, a.Name = "secrets", secretName(sharedObject)
		}
		return &a
	}
	random := rand.New(rand.NewPCG(6, 7))
	members = questions{kind: "a node that has access", want: authorizer.DecisionAllow}
	strangers = questions{kind: "a node that has none", want: authorizer.DecisionNoOpinion}
	for range count {
		members.attr = append(members.attr, attributes(kubelet(random.IntN(c.members))))
		strangers.attr = append(strangers.attr, attributes(kubelet(c.members+random.IntN(c.strangers))))
	}
	return members.compact(), strangers.compact()
}
