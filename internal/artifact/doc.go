// Package artifact fetches OCI artifacts, such as a model that was pushed with oras, from registries, and pushes them
// there.
//
//	CheckReference  host/path:tag or host/path@digest
//	Fetcher.For     a Turn, in which what one HTCJob needs is fetched
//	Turn.Resolve    what a reference names now: a digest and files with their sizes
//	Artifact.Open   one of the files; its content is checked against its digest
//	Pusher.Push     files, and then the manifest under its tag; what is there is not sent again
//	Pusher.Delete   the manifest that was pushed, by its digest
//
// Every request, be it to a registry, to a redirect's target or to the server that issues a registry's tokens, goes to
// a host that the administrator listed; the credentials are the user's or none. A registry that does not answer, or
// answers slowly, must not keep others waiting: few fetches run at a time, at most two of them from one registry and
// one of a namespace; namespaces take turns, and a turn has a deadline. A registry that failed to answer a namespace is
// left alone by it for a moment. What is pushed goes to the registry itself; its callers see to whose turn it is.
package artifact
