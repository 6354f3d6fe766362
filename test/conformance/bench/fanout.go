package main

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// fanOut is a cluster in which many nodes are related to one object, and other nodes
// ask for it too. Each node has one pod.
//
// Either the pod of every related node mounts the same configmap. Or it has a claim of
// its own, bound to a volume that needs the same secret.
type fanOut struct {
	related, unrelated int
	behindVolumes      bool
}

const sharedObject = 0

func (c fanOut) pod(i int) *corev1.Pod {
	var volumes []corev1.Volume
	switch {
	case i >= c.related:
	case c.behindVolumes:
		volumes = append(volumes, claimVolume(claimName(i)))
	default:
		volumes = append(volumes, configVolume(configName(sharedObject)))
	}
	return newPod(i, namespaceName(0), podName(i), accountName(i), volumes...)
}

func (c fanOut) volume(i int) *corev1.PersistentVolume {
	return newVolume(volumeName(i), namespaceName(0), claimName(i),
		&corev1.SecretReference{Namespace: namespaceName(0), Name: secretName(sharedObject)})
}

func (c fanOut) fill(to implementation) {
	for i := range c.related + c.unrelated {
		to.pods.OnAdd(c.pod(i), true)
	}
	if c.behindVolumes {
		for i := range c.related {
			to.volumes.OnAdd(c.volume(i), true)
		}
	}
}

// ask makes questions about that object, from nodes that may read it and from nodes
// that may not.
func (c fanOut) ask(count int) (related, unrelated questions) {
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
	related = questions{kind: "a node that has access", want: authorizer.DecisionAllow}
	unrelated = questions{kind: "a node that has none", want: authorizer.DecisionNoOpinion}
	for range count {
		related.attr = append(related.attr, attributes(kubelet(random.IntN(c.related))))
		unrelated.attr = append(unrelated.attr, attributes(kubelet(c.related+random.IntN(c.unrelated))))
	}
	return related.compact(), unrelated.compact()
}
