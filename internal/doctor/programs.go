package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/manifest"
)

const apiServerProgram = "kube-apiserver"

// arguments are the command line of a program.
type arguments []string

// argumentsOf are those of a container, from the program on: that which it starts, or
// which its shell starts.
func argumentsOf(c *corev1.Container, program string) (arguments, bool) {
	words := slices.Concat(c.Command, c.Args)
	if len(words) == 0 {
		return nil, false
	}
	if shell := path.Base(words[0]); shell == "sh" || shell == "bash" || shell == "ash" {
		words = strings.Fields(strings.NewReplacer(`"`, " ", "'", " ", "\\\n", " ").Replace(strings.Join(words, " ")))
	}
	// A script may name files and folders of the program before it starts it.
	for i, word := range slices.Backward(words) {
		if path.Base(word) == program {
			return words[i+1:], true
		}
	}
	// An image that starts the program by itself is called after it, and only its
	// arguments are given.
	if len(c.Command) == 0 && strings.HasPrefix(path.Base(imageName(c.Image)), program) {
		return c.Args, true
	}
	return nil, false
}

// flags are what is given for each flag, by its name without dashes. A flag without
// a value has "true".
func (a arguments) flags() map[string][]string {
	flags := map[string][]string{}
	for i, word := range a {
		name, dashed := strings.CutPrefix(word, "-")
		if !dashed {
			continue
		}
		name = strings.TrimPrefix(name, "-")
		name, value, given := strings.Cut(name, "=")
		if !given {
			if value = "true"; i+1 < len(a) && !strings.HasPrefix(a[i+1], "-") {
				value = a[i+1]
			}
		}
		flags[name] = append(flags[name], value)
	}
	return flags
}

// variable returns a shell variable that contains further flags; empty if there is none. A variable
// as the value of a flag hides no other flag.
func (a arguments) variable() string {
	for i, word := range a {
		value := i > 0 && strings.HasPrefix(a[i-1], "-") && !strings.Contains(a[i-1], "=")
		if !value && (strings.HasPrefix(word, "$") || strings.HasPrefix(word, "`")) {
			return word
		}
	}
	return ""
}

// last returns the effective value of a flag under any of its names.
func last(flags map[string][]string, names ...string) string {
	for _, name := range names {
		if values := flags[name]; len(values) > 0 {
			return values[len(values)-1]
		}
	}
	return ""
}

// imageName and imageTag return the parts of an image reference.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		return image[:colon]
	}
	return image
}

func imageTag(image string) string {
	name := imageName(image)
	tag, _, _ := strings.Cut(strings.TrimPrefix(image, name), "@")
	return strings.TrimPrefix(tag, ":")
}

func (r *reader) pod(d *manifest.Document) error {
	var pod corev1.Pod
	if err := decode(d, &pod); err != nil {
		return err
	}
	r.cluster.addContainers(&pod.ObjectMeta, &pod.Spec, func(i int) finding.Place {
		return place(d, "spec", "containers", fmt.Sprint(i))
	})
	return nil
}

func (r *reader) webhooks(d *manifest.Document) error {
	var w struct {
		Webhooks []struct {
			Name          string                         `json:"name"`
			FailurePolicy *admissionv1.FailurePolicyType `json:"failurePolicy"`
		} `json:"webhooks"`
	}
	if err := d.Decode(&w); err != nil {
		return err
	}
	for _, hook := range w.Webhooks {
		r.cluster.addWebhook(hook.Name, hook.FailurePolicy, place(d))
	}
	return nil
}

// workload reads the pod template of a DaemonSet or a Deployment.
func (r *reader) workload(d *manifest.Document) error {
	var w struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := d.Decode(&w); err != nil {
		return err
	}
	r.cluster.addContainers(&w.Metadata, &w.Spec.Template.Spec, func(i int) finding.Place {
		return place(d, "spec", "template", "spec", "containers", fmt.Sprint(i))
	})
	return nil
}

// addContainers adds the API servers and authenticators that a pod's containers run.
func (c *Cluster) addContainers(meta *metav1.ObjectMeta, pod *corev1.PodSpec, at func(container int) finding.Place) {
	for i := range pod.Containers {
		container := &pod.Containers[i]
		if args, ok := argumentsOf(container, apiServerProgram); ok {
			a := APIServer{
				Place: at(i), Name: meta.Name, Flags: args.flags(), command: args.flags(),
				Version: imageTag(container.Image), Revision: meta.Labels["revision"],
			}
			if variable := args.variable(); variable != "" {
				a.Lacking, a.Unseen = resourceAPIServers, fmt.Sprintf(
					"%s has flags in %s, which its manifest does not show; write them out", a.Name, variable,
				)
			}
			c.APIServers = append(c.APIServers, a)
		}
		c.rancherContainer(meta.Name, container, at(i))
		if args, ok := argumentsOf(container, IAMAuthenticator); ok && slices.Contains(args, "server") {
			flags := args.flags()
			c.addAuthenticator(Authenticator{
				Place: at(i), Kind: IAMAuthenticator,
				ClusterID: last(flags, "cluster-id", "i"), Partition: last(flags, "partition"),
			})
		}
	}
}

// addAuthenticator adds an authenticator, unless none of its settings is known.
func (c *Cluster) addAuthenticator(a Authenticator) {
	if a.ClusterID != "" || a.Partition != "" || a.Kind == NodeAuthorizer {
		c.Authenticators = append(c.Authenticators, a)
	}
}
