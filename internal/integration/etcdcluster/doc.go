// Package etcdcluster runs an etcd cluster for tests.
//
// Each member is a process of its own, the test program started once more, so that
// to kill one and to freeze one are what they are in earnest. For this
// TestMain calls [RunMember] before anything else:
//
//	func TestMain(m *testing.M) {
//		etcdcluster.RunMember()
//		os.Exit(m.Run())
//	}
//
// Members listen on loopback alone and keep their data in a temporary folder. They
// end with the test program, whatever ends that.
package etcdcluster
