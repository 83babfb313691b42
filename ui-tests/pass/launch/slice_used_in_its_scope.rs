//! The twin of `ui/launch/slice_used_in_its_scope.rs`: behind the scope the slice is its owner's again.

fn run() -> titan::Result<()> {
    let mut y = vec![1.0f32; 4];
    titan::cpu::scope(|host| {
        let lent = host.borrow_mut(&mut y, [4])?;
        assert_eq!(lent.to_vec()?, [1.0; 4]);
        titan::Result::Ok(())
    })?;
    y[0] = 2.0;
    Ok(())
}
