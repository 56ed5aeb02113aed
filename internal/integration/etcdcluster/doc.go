// Package etcdcluster runs an etcd cluster for your tests.
//
// Each member is a process, started from your test program, so you can really kill or freeze
// it. For this, call [RunMember] first in TestMain:
//
//	func TestMain(m *testing.M) {
//		etcdcluster.RunMember()
//		os.Exit(m.Run())
//	}
//
// Members only listen on loopback and keep their data in a temporary directory. They end with
// the test program, even if you kill it.
package etcdcluster
