//go:build !releases

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// vomsServer is that of the VO owls on loopback, for a robot that is in the groups /owls and /owls/barn.
type vomsServer struct {
	// image is a directory that has what a site's image with VOMS clients has, and the robot's certificate as in a Pod.
	image string
	stop  func()
}

// vomsImage completes the image of Debian's packages: the authority, the server's certificate and the robot's, what the
// VO tells its users, what the Pod of deploy/components/voms-proxy mounts, and the VO's database.
const vomsImage = `set -e
cd "$1"
for program in init info; do ln -s voms-proxy-${program}2 usr/bin/voms-proxy-$program; done
mkdir -p certificate key proxy etc/vomses etc/grid-security/certificates etc/grid-security/vomsdir/owls srv/database
openssl req -x509 -newkey rsa:2048 -nodes -subj /O=Lab/CN=CA -keyout srv/ca.key -out srv/ca.pem
signed() {
	openssl req -newkey rsa:2048 -nodes -subj "/O=Lab/CN=$1" -keyout "$2" -out srv/csr
	openssl x509 -req -in srv/csr -CA srv/ca.pem -CAkey srv/ca.key -CAcreateserial -out "$3"
}
signed robot certificate/userkey.pem certificate/usercert.pem
signed voms.lab srv/key.pem srv/cert.pem
cp srv/ca.pem "etc/grid-security/certificates/$(openssl x509 -in srv/ca.pem -noout -hash).0"
printf '/O=Lab/CN=voms.lab\n/O=Lab/CN=CA\n' >etc/grid-security/vomsdir/owls/voms.lab.lsc
echo "\"owls\" \"127.0.0.1\" \"$2\" \"/O=Lab/CN=voms.lab\" \"owls\"" >etc/vomses/owls
chown 0:65532 certificate/*
chmod 440 certificate/*
chown 65532 key proxy
{
	printf 'CREATE DATABASE voms;\nUSE voms;\n'
	cat usr/share/voms/voms-mysql.data
	echo "INSERT INTO version VALUES (2);
	INSERT INTO ca VALUES (1, '/O=Lab/CN=CA', NULL);
	INSERT INTO usr VALUES (1, '/O=Lab/CN=robot', 1, NULL, NULL, NULL);
	INSERT INTO groups VALUES (1, '/owls', 1, 1), (2, '/owls/barn', 1, 1);
	INSERT INTO m VALUES (1, 1, 1, NULL, NULL), (2, 1, 2, NULL, NULL);"
} >srv/tables.sql
echo none >srv/password
chmod 640 srv/password`

// serveVOMS starts Debian's VOMS server and its database until the test's end.
func serveVOMS(b *trial.Bench) *vomsServer {
	b.T.Helper()
	s := &vomsServer{image: b.Image("voms")}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b.T, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(b.T, free.Close())
	_, err = b.Lab.RunAs(b.T.Context(), "root", "sh", "-c", vomsImage, "sh", s.image, fmt.Sprint(port))
	require.NoError(b.T, err)

	// Without a mode, what asks for InnoDB gets the default engine, which is there sooner.
	s.start(b, "mariadbd", "--no-defaults", "--user=root", "--skip-grant-tables", "--skip-networking", "--skip-innodb",
		"--default-storage-engine=Aria", "--sql-mode=", "--datadir=/srv/database", "--socket=/srv/socket",
		"--init-file=/srv/tables.sql")
	b.Eventually(func() bool {
		_, err := os.Stat(filepath.Join(s.image, "srv", "socket"))
		return err == nil
	}, func() string { return s.log("mariadbd") })
	s.stop = s.start(b, "voms", "--debug", "--vo=owls", fmt.Sprint("--port=", port), fmt.Sprint("--uri=voms.lab:", port),
		"--sqlloc=/usr/lib/voms/libvomsmysql.so", "--mysql-socket=/srv/socket", "--passfile=/srv/password",
		"--x509_user_cert=/srv/cert.pem", "--x509_user_key=/srv/key.pem", "--logfile=/srv/voms.log")
	b.Eventually(func() bool {
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	}, func() string { return s.log("voms") })
	return s
}

// start runs a server of the image until stop or the test's end.
func (s *vomsServer) start(b *trial.Bench, program string, args ...string) (stop func()) {
	b.T.Helper()
	log, err := os.Create(filepath.Join(s.image, "srv", program+".out"))
	require.NoError(b.T, err)
	cmd := exec.Command(b.Lab.Bin("lab"), append([]string{"as", "root", "chroot", s.image, program}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(b.T, cmd.Start())
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it takes the program in the lab along
		_ = cmd.Wait()
		_ = log.Close()
	})
	b.T.Cleanup(stop)
	return stop
}

func (s *vomsServer) log(program string) string {
	text, _ := os.ReadFile(filepath.Join(s.image, "srv", program+".out"))
	return string(text)
}
