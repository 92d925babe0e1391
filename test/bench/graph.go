package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// listedGraph compares an HTCWorkflow of n nodes whose edges are listed one by one, in tables, with the same DAG sent
// by condor_submit_dag, as the row workflow does.
func listedGraph(ctx context.Context, p *place, n int) (figures []figure, err error) {
	d, err := p.working(ctx, "--reconcile-schedule=@every 1m")
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	if _, err := p.byDAGMan(ctx, pairs(2)); err != nil { // the image is unpacked once
		return nil, err
	}
	parents := irregular(n)
	raw, err := p.byDAGMan(ctx, dagOf(parents))
	if err != nil {
		return nil, err
	}
	w, tables := graphOf(parents)
	if _, err := p.core.CoreV1().ConfigMaps(p.ours).Create(ctx, tables, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	mine, err := p.succeeded(ctx, w)
	if err != nil {
		return nil, err
	}
	return []figure{
		{what: "created to sent", ours: mine.sent.Seconds(), unit: "s"},
		{ours: mine.ended.Seconds(), floor: raw.Seconds(), unit: "s", aim: "1.15x", note: "load " + load()},
		{what: "output fetched after the end", ours: (mine.fetched - mine.ended).Seconds(), unit: "s"},
	}, nil
}

// irregular has up to three parents of each node: mostly such as are listed shortly before it.
func irregular(n int) [][]int {
	random := rand.New(rand.NewPCG(1, 2))
	parents := make([][]int, n)
	for i := max(1, min(n/4, 64)); i < n; i++ {
		for range 1 + random.IntN(3) {
			parents[i] = append(parents[i], i-1-random.IntN(min(i, 64)))
		}
	}
	return parents
}

func dagOf(parents [][]int) string {
	var b strings.Builder
	for i := len(parents) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "JOB N%d node.sub\nVARS N%d n=\"%d\"\n", i, i, i)
	}
	for i, before := range parents {
		for _, p := range before {
			fmt.Fprintf(&b, "PARENT N%d CHILD N%d\n", p, i)
		}
	}
	return b.String()
}

// graphOf is the workflow, and the ConfigMap with its tables.
func graphOf(parents [][]int) (*v1alpha1.HTCWorkflow, *corev1.ConfigMap) {
	nodes, edges := "node,step\n", "parents,children\n"
	for i, before := range parents {
		nodes += fmt.Sprintf("N%d,first\n", i)
		for _, p := range before {
			edges += fmt.Sprintf("N%d,N%d\n", p, i)
		}
	}
	from := func(key string) []v1alpha1.ItemsFrom {
		return []v1alpha1.ItemsFrom{{ConfigMapKeyRef: v1alpha1.KeyRef{Name: "graph", Key: key}}}
	}
	w := twoSteps("graph", 2, "")
	w.Spec.Steps, w.Spec.Sequences = w.Spec.Steps[:1], nil
	w.Spec.Graph = &v1alpha1.Graph{NodesFrom: from("nodes.csv"), EdgesFrom: from("edges.csv")}
	return w, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "graph"},
		Data:       map[string]string{"nodes.csv": nodes, "edges.csv": edges},
	}
}
