package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// made compares an HTCJob of n jobs that do nothing, made by a factory, with the same factory by hand, each until its
// last job has ended. There are two floors: jobs as submit files have them, which HTCondor runs in their image; and the
// least that can be done, an executable that calls apptainer. Neither has a callback or a spool. The image is a
// directory, as in CVMFS: of an image in a registry, each job of the first floor makes one for itself.
func made(ctx context.Context, p *place, n int) (figures []figure, err error) {
	ctx, cancel := context.WithTimeout(ctx, 6*patience)
	defer cancel()
	d, err := p.working(ctx)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	image, err := p.unpackedImage(ctx)
	if err != nil {
		return nil, err
	}
	files, commands := inUniverse(image)
	universe, universeCPU, err := p.allByHand(ctx, n, files, commands)
	if err != nil {
		return nil, err
	}
	files, commands = callsApptainer(image)
	raw, rawCPU, err := p.allByHand(ctx, n, files, commands)
	if err != nil {
		return nil, err
	}
	before, err := cpuUsage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if _, err := p.create(ctx, p.ours, "made", 1, n, asFactory, func(job *v1alpha1.HTCJob) {
		job.Spec.HTCOpts, job.Spec.Script.Image = "", image
	}); err != nil {
		return nil, err
	}
	over := func(job *v1alpha1.HTCJob) bool { return int(job.Status.Succeeded) == n }
	if _, err := p.untilJob(ctx, "made-00000", "over", over); err != nil {
		return nil, err
	}
	ended := time.Since(began)
	fetched := func(job *v1alpha1.HTCJob) bool { return job.Status.OutputFetched }
	if _, err := p.untilJob(ctx, "made-00000", "fetched", fetched); err != nil {
		return nil, err
	}
	all := time.Since(began)
	after, err := cpuUsage()
	if err != nil {
		return nil, err
	}
	used := after.since(before)
	fmt.Println(perItem("a job of a factory, beside one in HTCondor's container universe", used, universeCPU, n))
	fmt.Println(perItem("a job of a factory, beside one that calls apptainer", used, rawCPU, n))
	return []figure{
		{ours: ended.Seconds(), floor: universe.Seconds(), unit: "s", aim: "1.1x", note: "load " + load()},
		{what: "beside jobs that call apptainer", ours: ended.Seconds(), floor: raw.Seconds(), unit: "s"},
		{what: "output fetched after the end", ours: (all - ended).Seconds(), unit: "s"},
	}, nil
}

// allByHand sends a factory of n jobs by hand, and returns how long they took to their end and the CPU they used.
func (p *place) allByHand(
	ctx context.Context,
	n int,
	files map[string]string,
	commands string,
) (took time.Duration, used usage, err error) {
	before, err := cpuUsage()
	if err != nil {
		return 0, nil, err
	}
	began := time.Now()
	if err := p.sendFactory(ctx, n, files, commands); err != nil {
		return 0, nil, err
	}
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		left, err := p.as(ctx, "admin", "", nil, "condor_q", "-allusers", "-factory", "-af", "ClusterId")
		return left == "", err
	})
	took = time.Since(began)
	if err != nil {
		return 0, nil, err
	}
	after, err := cpuUsage()
	return took, after.since(before), err
}

// inUniverse returns the files and commands of jobs that HTCondor itself runs in an image.
func inUniverse(image string) (files map[string]string, commands string) {
	return map[string]string{"script": "#!/bin/bash\nexit 0\n"},
		"universe = container\ncontainer_image = " + image + "\ntransfer_container = false\nexecutable = script\n"
}

// callsApptainer returns the files and commands of jobs that run the container themselves.
func callsApptainer(image string) (files map[string]string, commands string) {
	return map[string]string{"node.sh": inContainer(image), "script": "exit 0\n"},
		"executable = node.sh\ntransfer_input_files = script\n"
}

// unpackedImage returns a directory with the image of all rows.
func (p *place) unpackedImage(ctx context.Context) (string, error) {
	dir, err := p.dir("robot", "image")
	if err != nil {
		return "", err
	}
	image := dir + "/centos"
	_, err = p.as(
		ctx, "robot", dir, nil, "env", "APPTAINER_NOHTTPS=1", "APPTAINER_CACHEDIR="+dir+"/cache", "APPTAINER_TMPDIR="+dir,
		"apptainer", "--quiet", "build", "--sandbox", image, p.registryImage(),
	)
	return image, err
}
