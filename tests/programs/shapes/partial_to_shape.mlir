// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: shape = [2, 3]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = ts.build_partial_shape [2 : i64, 3 : i64]
  %s = ts.to_shape %a
  %c1 = ts.print_shape %s, %c0
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'unknown':
// CHECK-NEXT: 'unknown' returned <<error: Unknown dimensions at following indices = [1, 2]>>
func.func @unknown() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = ts.build_partial_shape [1 : i64, -1 : i64, -1 : i64]
  %s = ts.to_shape %a // expected-error {{Unknown dimensions at following indices = [1, 2]}}
  %c1 = ts.print_shape %s, %c0
  tfrt.return %c1 : !tfrt.chain
}
