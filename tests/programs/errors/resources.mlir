// CHECK-LABEL: --- Running 'explicit':
// CHECK-NEXT: Allocated TestResource
// CHECK-NEXT: Destroyed TestResource
// CHECK-NEXT: tfrt_test.deallocate_resource done
func.func @explicit() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %r, %c1 = "tfrt_test.allocate_resource"(%c0) : (!tfrt.chain) -> (!tfrt.test.resource, !tfrt.chain)
  %c2 = "tfrt_test.deallocate_resource"(%r, %c1) : (!tfrt.test.resource, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}

// The resource dies, too, when its consumer is skipped.
// CHECK-LABEL: --- Running 'skipped':
// CHECK-NEXT: Allocated TestResource
// CHECK-NEXT: Destroyed TestResource
// CHECK-NOT: done
// CHECK: 'skipped' returned <<error: error chain>>
func.func @skipped() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %r, %c1 = "tfrt_test.allocate_resource"(%c0) : (!tfrt.chain) -> (!tfrt.test.resource, !tfrt.chain)
  %c2 = "tfrt_test.error_chain"(%c1) : (!tfrt.chain) -> !tfrt.chain // expected-error {{error chain}}
  %c3 = "tfrt_test.deallocate_resource"(%r, %c2) : (!tfrt.test.resource, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c3 : !tfrt.chain
}
