package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
)

func printPods(out io.Writer, pods []corev1.Pod) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tPOD\tSTATUS\tNODE")
	for _, pod := range pods {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", pod.Namespace, pod.Name, pod.Status.Phase, pod.Spec.NodeName)
	}
	return table.Flush()
}
