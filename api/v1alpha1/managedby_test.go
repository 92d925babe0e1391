package v1alpha1

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

func managed(name, by string) HTCJob {
	job := HTCJob{Spec: HTCJobSpec{Runner: Runner{ManagedBy: by}}}
	job.Name = name
	return job
}

func TestWhatAnotherControllerRunsIsNeitherListedNorWatched(t *testing.T) {
	t.Parallel()
	list := &HTCJobList{
		Items: []HTCJob{managed("absent", ""), managed("other", "example.org/other"), managed("named", Manager)},
	}
	require.NoError(t, dropped(list, Ours))
	require.Len(t, list.Items, 2)
	require.Equal(t, []string{"absent", "named"}, []string{list.Items[0].Name, list.Items[1].Name})

	flows := &HTCWorkflowList{
		Items: []HTCWorkflow{{Spec: HTCWorkflowSpec{Runner: Runner{ManagedBy: "example.org/other"}}}},
	}
	require.NoError(t, dropped(flows, Ours))
	require.Empty(t, flows.Items)

	source := watch.NewFakeWithChanSize(4, false)
	other, ours := managed("other", "example.org/other"), managed("ours", "")
	source.Add(&other)
	source.Modify(&other)
	source.Add(&ours)
	source.Action(watch.Bookmark, &HTCJob{})
	stream := filtered(source, Ours)
	require.Equal(t, watch.Event{Type: watch.Added, Object: &ours}, <-stream.ResultChan())
	require.Equal(t, watch.Event{Type: watch.Bookmark, Object: &HTCJob{}}, <-stream.ResultChan())
	stream.Stop()

	source = watch.NewFakeWithChanSize(2, false)
	source.Add(&ours)
	source.Action(watch.Bookmark, &HTCJob{})
	stream = filtered(source, func(runtime.Object) bool { return false })
	require.Equal(t, watch.Bookmark, (<-stream.ResultChan()).Type, "a list by watching ends with one")
	stream.Stop()
}
