package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

func graphCommand() *cobra.Command {
	var at Connection
	c := &cobra.Command{
		Use:   "graph NAME | FILE",
		Short: "Draw the steps of an HTCWorkflow",
		Long: `Print the steps of an HTCWorkflow in the language of Graphviz, with how far each is: htcd graph scan | dot -Tsvg. What is
in a file, .yaml, .yml or .json, or - for the standard input, is checked as htcd checks it, and drawn without a cluster.`,
		Args: arguments(1, "the name of an HTCWorkflow, or a file"),
	}
	at.Flags(c.Flags())
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if isFile(args[0]) {
			text, err := read(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			return drawFile(cmd.OutOrStdout(), args[0], text)
		}
		ref, err := named(args[0], workflowKind)
		if err != nil {
			return err
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		return where.draw(cmd.Context(), cmd.OutOrStdout(), ref.name)
	}
	return c
}

func isFile(argument string) bool {
	return argument == "-" || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(argument))
}

func (c *cluster) draw(ctx context.Context, out io.Writer, name string) error {
	o, err := c.workflows.get(ctx, name)
	if err != nil {
		return err
	}
	return draw(out, o.workflow)
}

// drawFile draws the HTCWorkflows of a file; what else is in it does not concern this command.
func drawFile(out io.Writer, file string, text []byte) error {
	all, err := objects(text)
	if err != nil {
		return setting.Usage{Err: fmt.Errorf("%s: %w", file, err)}
	}
	found := false
	for _, m := range all {
		if m.kind() != workflowKind {
			continue
		}
		found = true
		var w v1alpha1.HTCWorkflow
		if err := yaml.UnmarshalStrict(m.text, &w); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		err := draw(out, &w)
		if err == nil {
			err = checkPorts(&w)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if !found {
		return setting.Usage{Err: fmt.Errorf("%s: there is no HTCWorkflow in it", file)}
	}
	return nil
}

// checkPorts says what htcd ports would: the HTCWorkflow itself runs all the same.
func checkPorts(w *v1alpha1.HTCWorkflow) error {
	g, err := graph.New(w.Spec)
	if err != nil {
		return err
	}
	for i := range w.Spec.Ports {
		if err := g.CheckPort(i, w.Sequences()); err != nil {
			return err
		}
	}
	return nil
}

func draw(out io.Writer, w *v1alpha1.HTCWorkflow) error {
	if len(w.Spec.Steps) == 0 {
		return errors.New("spec.steps: there is none")
	}
	g, err := graph.New(w.Spec)
	if err != nil {
		return err
	}
	sequences := max(w.Sequences(), int(w.Status.Sequences.Total))
	// Tables in ConfigMaps are read when an attempt begins.
	_, tables, err := graph.Read(
		w.Spec,
		submit.CheckVariable,
		func(v1alpha1.ItemsFrom) ([]byte, error) { return nil, nil },
	)
	if err != nil {
		return err
	}
	g.Fill(tables)
	if err := g.Check(sequences); err != nil {
		return err
	}
	_, err = io.WriteString(out, g.DOT(strings.TrimSuffix(w.Name+w.GenerateName, "-"), sequences, w.Status.Steps))
	return err
}
