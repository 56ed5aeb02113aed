// Package etcdcluster runs an etcd cluster for tests.
//
// Each member is a process of its own, started from the test program, so that killing
// or freezing one is the real thing. For this TestMain calls [RunMember] first:
//
//	func TestMain(m *testing.M) {
//		etcdcluster.RunMember()
//		os.Exit(m.Run())
//	}
//
// Members listen on loopback only, keep their data in a temporary directory, and end
// with the test program, even if it is killed.
package etcdcluster
