package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// changeFlags are objects that a state is changed by before a question is answered.
type changeFlags struct {
	with, without []string
}

func (f *StateFlags) AddChanges(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Changes.with, "with", nil,
		"answer as if the objects of a file or folder of manifests, or of - for stdin, were applied; can be repeated")
	Must(cmd.MarkFlagFilename("with"))
	cmd.Flags().StringArrayVar(&f.Changes.without, "without", nil,
		"answer as if this object were deleted: KIND/NAME or KIND/NAMESPACE/NAME; can be repeated")
	Must(cmd.RegisterFlagCompletionFunc("without", f.completeRemovable()))
}

// Given reports whether the state is to be changed.
func (c *changeFlags) Given() bool { return len(c.with)+len(c.without) > 0 }

// check validates the flags before anything is read.
func (c *changeFlags) check(from []string) error {
	if slices.Contains(c.with, "-") && slices.Contains(from, "-") {
		return Usagef("standard input (-) is given twice, but can be read only once")
	}
	for _, text := range c.without {
		if parts := strings.Split(text, "/"); len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
			return Usagef("--without %s: want KIND/NAME or KIND/NAMESPACE/NAME, such as clusterrolebinding/admins", text)
		}
	}
	return nil
}

// Change applies the changes to a state. It returns what was touched, and what the user should know.
func (f *StateFlags) Change(ctx context.Context, state *source.State) ([]source.Applied, []string, error) {
	if !f.Changes.Given() {
		return nil, nil, nil
	}
	var without []source.ObjectRef
	names := NewNames(state)
	for _, text := range f.Changes.without {
		o, err := f.removed(names, text)
		if err != nil {
			return nil, nil, err
		}
		without = append(without, o)
	}
	changes, err := f.readChanges(ctx)
	if err != nil {
		return nil, nil, err
	}
	applied, notes, err := state.Change(changes, without)
	if missing := (*source.NotFoundError)(nil); errors.As(err, &missing) {
		return nil, nil, fmt.Errorf("--without: %w%s", err, DidYouMean(missing.Object.Name, missing.Known))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--without: %w", err)
	}
	if changes != nil {
		if line := unused(changes.Origin, changes.Skipped, "no answer depends on them"); line != "" {
			notes = append(notes, line)
		}
		state.Origin += ", with " + changes.Origin
	}
	if len(without) > 0 {
		state.Origin += ", without " + Some(f.Changes.without, false)
	}
	return applied, notes, nil
}

func (f *StateFlags) readChanges(ctx context.Context) (*source.Changes, error) {
	if len(f.Changes.with) == 0 {
		return nil, nil
	}
	progress := NewProgress(f.App.Streams)
	defer progress.Done()
	return source.ReadChanges(ctx, f.Changes.with, source.ChangeOptions{
		Stdin: f.App.In, Progress: progress.Callback(), Namespace: f.DefaultNamespace(),
	})
}

// removed reads KIND/NAME or KIND/NAMESPACE/NAME.
func (f *StateFlags) removed(names *resources.Mapper, text string) (source.ObjectRef, error) {
	parts := strings.Split(text, "/")
	found, err := names.Resolve(parts[0])
	if err != nil {
		return source.ObjectRef{}, Usagef("--without %s: %w", text, err)
	}
	o := source.ObjectRef{Kind: found.Kind, Group: found.Group, Name: parts[len(parts)-1]}
	switch {
	case len(parts) == 3 && !found.Namespaced:
		return o, Usagef("--without %s: %s have no namespace: write %s/%s", text, found.Name, parts[0], o.Name)
	case len(parts) == 3:
		o.Namespace = parts[1]
	case found.Namespaced:
		o.Namespace = f.DefaultNamespace()
	}
	return o, nil
}

// noteChanges writes which objects replace objects of the state, and what else the user should know.
func (a *App) noteChanges(applied []source.Applied, notes []string) {
	var lines []string
	for _, c := range applied {
		if c.Action == source.Replaced && c.Because == "" {
			lines = append(lines, fmt.Sprintf("%s:%d: %s replaces the one of the state", c.File, c.Line, c.ObjectRef))
		}
	}
	lines = append(lines, notes...)
	for _, line := range lines[:min(WarningRows, len(lines))] {
		a.PrintLine("note: ", line)
	}
	if more := len(lines) - WarningRows; more > 0 {
		a.PrintLine("note: ", fmt.Sprintf("and %s more about the changes", render.Thousands(more)))
	}
}
