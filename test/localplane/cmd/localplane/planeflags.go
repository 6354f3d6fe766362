package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// planeFlags are the flags that describe a plane.
type planeFlags struct {
	dir                 string
	authorization       string
	authorizationConfig string
	count               int
	named               []string
	extraArgs           []string
}

func (f *planeFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.authorization, "authorization", "",
		`who decides about nodes: "in-tree" (the Node authorizer and NodeRestriction; the default) or "rbac-only" (neither of them)`)
	flags.StringVar(&f.authorizationConfig, "authorization-config", "",
		"file with an AuthorizationConfiguration for kube-apiserver; NodeRestriction is off then")
	flags.IntVar(&f.count, "nodes", 0, "number of hollow nodes to join, named node-1, node-2, ...")
	flags.StringArrayVar(&f.named, "node", nil, "hollow node to join, NAME or NAME:LABEL=VALUE,...; may be repeated")
	flags.StringArrayVar(&f.extraArgs, "extra-arg", nil,
		"one more argument of a component, as COMPONENT=ARG, for example kube-apiserver=--v=4; may be repeated")
}

func (f *planeFlags) options() (localplane.Options, error) {
	options := localplane.Options{
		Dir:                 f.dir,
		Authorization:       localplane.Authorization(f.authorization),
		AuthorizationConfig: f.authorizationConfig,
		ExtraArgs:           map[localplane.Component][]string{},
	}
	for _, extra := range f.extraArgs {
		component, arg, ok := strings.Cut(extra, "=")
		if !ok {
			return options, fmt.Errorf("--extra-arg %q is not of the form COMPONENT=ARG", extra)
		}
		c := localplane.Component(component)
		options.ExtraArgs[c] = append(options.ExtraArgs[c], arg)
	}
	return options, nil
}

// nodeFlag is a node to join.
type nodeFlag struct {
	name   string
	labels map[string]string
}

func (f *planeFlags) nodes() ([]nodeFlag, error) {
	var nodes []nodeFlag
	for _, text := range f.named {
		name, labels, _ := strings.Cut(text, ":")
		node := nodeFlag{name: name, labels: map[string]string{}}
		for _, label := range strings.FieldsFunc(labels, func(r rune) bool { return r == ',' }) {
			key, value, ok := strings.Cut(label, "=")
			if !ok {
				return nil, fmt.Errorf("--node %q: the label %q is not of the form LABEL=VALUE", text, label)
			}
			node.labels[key] = value
		}
		nodes = append(nodes, node)
	}
	for i := range f.count {
		nodes = append(nodes, nodeFlag{name: fmt.Sprintf("node-%d", i+1)})
	}
	return nodes, nil
}

// start starts the plane and joins its nodes. If it fails, it stops everything.
func (f *planeFlags) start(ctx context.Context, options localplane.Options) (*localplane.Plane, error) {
	nodes, err := f.nodes()
	if err != nil {
		return nil, err
	}
	plane, err := localplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	joins, joinCtx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		joins.Go(func() error {
			_, err := plane.AddNode(joinCtx, node.name, localplane.NodeOptions{Labels: node.labels})
			return err
		})
	}
	if err := joins.Wait(); err != nil {
		if stopErr := plane.Stop(); stopErr != nil {
			return nil, fmt.Errorf("%w; then: %w", err, stopErr)
		}
		return nil, err
	}
	return plane, nil
}
